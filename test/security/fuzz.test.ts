/** Random calls of every route, made from its schema: never a 5xx, always the contract's form, and Berth goes on. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { errors } from "../../src/protocol/error-codes.ts";
import { type Route, type RouteName, routes } from "../../src/protocol/routes.ts";
import type { Answered } from "./attacked.ts";
import { Attacked } from "./attacked.ts";
import { randomCall } from "./random-calls.ts";

const runs = 40;
const seed = 8_215_019;
/** What the platform has and one machine has not, and what nothing in the sandbox serves. */
const unsupported = ["unsupported"];

const all = Object.keys(routes) as RouteName[];
/** An answer to these goes on for as long as it is read, or ends the sandbox that others are sent to. */
const apart: RouteName[] = [
  ...(["watchFiles", "destroySandbox", "waitForProcess", "processLogs"] as const),
  // Without the headers of an upgrade the runtime answers; frames.test.ts opens them.
  ...(["connectLease", "connectTerminal"] as const),
];
const drawn = all.filter(
  (name) => !apart.includes(name) && (routes[name] as Route).right !== undefined,
);

describe("random calls", () => {
  let berth: Attacked;
  let id: string;
  let sent = 0;
  let taken = 0;

  beforeAll(async () => {
    berth = await Attacked.start();
    id = await berth.create({ idleTimeoutMs: 600_000 });
    await berth.ok("PUT", "/v1/plans/mine", {});
  });

  afterAll(async () => {
    expect(await berth.end()).toEqual([]);
  });

  const told = ({ status, body, text }: Answered): string => {
    if (status < 400) return "well";
    const code = body.error?.code ?? text;
    if (!(code in errors)) return `no code of ours: ${status} ${text}`;
    const known = errors[code as keyof typeof errors];
    if (known.status !== status) return `${code} with ${status}`;
    if (status >= 500 && !unsupported.includes(code)) return `${status} ${text}`;
    return code === "bad_request" && body.error?.field === undefined ? `no field: ${text}` : "well";
  };

  it.each(drawn)("[SC13] of %s are answered in form", async (name) => {
    await fc.assert(
      fc.asyncProperty(randomCall(name, id, "mine"), async (call) => {
        const isStream = /follow=(1|%221%22)/.test(call.path);
        if (isStream) return;
        const answer = await berth.send(call);
        sent += 1;
        if (answer.status < 300) taken += 1;
        expect(told(answer)).toBe("well");
      }),
      {
        numRuns: runs,
        seed,
        endOnFailure: true,
        interruptAfterTimeLimit: 8000,
        markInterruptAsFailure: false,
      },
    );
    for (const { id: made } of (await berth.ok("GET", "/v1/sandboxes")).sandboxes as {
      id: string;
    }[]) {
      if (made !== id)
        await berth.send({ method: "DELETE", path: `/v1/sandboxes/${made}?force=true` });
    }
  });

  it("[SC13] were many, and the sandbox that they were sent to still works", async () => {
    expect(sent).toBeGreaterThan(drawn.length * runs * 0.6);
    // Not all of them were turned away at the first look.
    expect(taken).toBeGreaterThan(sent / 20);
    expect(taken).toBeLessThan(sent);
    await berth.send({
      method: "DELETE",
      path: `/v1/sandboxes/${id}/lease?break=true&reason=over`,
    });
    const { state } = await berth.ok("POST", `/v1/sandboxes/${id}/start`);
    expect(["running", "starting"]).toContain(state);
    const ran = await berth.exec(id, { command: "echo works" });
    expect(ran.stdout).toBe("works\n");
  });
});
