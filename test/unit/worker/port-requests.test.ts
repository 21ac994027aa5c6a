import { describe, expect, it } from "vitest";
import { generateSandboxId } from "../../../src/worker/auth/ids.ts";
import { portRequestOf } from "../../../src/worker/ports/port-traffic.ts";

const id = generateSandboxId("the secret of the tests of port requests");
const label = `8000-${id}-${"a".repeat(26)}`;
const call = `/v1/sandboxes/${id}/exec`;

/** The URL as it was sent: a `Request` object would normalise it. */
const leadsTo = (url: string) => portRequestOf({ url } as Request)?.target;

describe("a request for a server in a sandbox", () => {
  it.each([
    ["a call", `http://berth.test${call}`, undefined],
    ["a call with a query that names one", `http://berth.test${call}?to=/p/${label}/`, undefined],
    ["a host of its own", `http://${label}.berth.test${call}`, call],
    ["a path", `http://berth.test/p/${label}/v1/x`, "/v1/x"],
    ["a path behind a call's", `http://berth.test/v1/../p/${label}/x`, "/x"],
    ["a host that holds a path", `http://berth.test\\p\\${label}\\${call}`, `/${call}`],
  ])("[J1] %s has the same target each time", (_what, url, target) => {
    for (const _again of [1, 2, 3]) {
      expect(leadsTo(`http://berth.test${call}`)).toBeUndefined();
      expect(leadsTo(url)).toBe(target);
    }
  });
});
