import { beforeEach, describe, expect, it } from "vitest";
import { parseQuotas, quotaOf } from "../../../src/protocol/fields/quota.ts";
import { DirectoryHarness } from "./harness.ts";

const scope = "github.com/a/b";
let harness: DirectoryHarness;

beforeEach(() => {
  harness = new DirectoryHarness();
});

function allow(text: string): void {
  harness.quotas = parseQuotas(text);
  harness.restart();
}

const refusedBy = (quota: string, max: number) => ({ code: "too_many", facts: { quota, max } });

describe("the quota of a tenant", () => {
  it("[ST5] refuses all sandboxes of one create, or none", async () => {
    allow("local:sandboxes=3");
    const three = { count: 3 };
    await harness.findOrCreate();
    await expect(harness.findOrCreate(three)).rejects.toMatchObject(refusedBy("sandboxes", 3));
    const made = await harness.findOrCreate({ count: 2 });
    expect(made.sandbox.others).toHaveLength(1);
    await expect(harness.findOrCreate()).rejects.toMatchObject(refusedBy("sandboxes", 3));
  });

  it("[O44] lets exactly as many concurrent creates through as it allows", async () => {
    allow("local:sandboxes=3");
    const calls = await Promise.allSettled(
      Array.from({ length: 10 }, () => harness.findOrCreate()),
    );
    expect(calls.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
    for (const call of calls) {
      if (call.status === "rejected") expect(call.reason).toMatchObject(refusedBy("sandboxes", 3));
    }
  });

  it("[O44] lets an existing sandbox be found and replaced, and counts no destroyed one", async () => {
    allow("local:sandboxes=1");
    const { sandbox } = await harness.findOrCreate({ scope });
    expect(await harness.findOrCreate({ scope })).toMatchObject({ made: false, sandbox });
    await expect(harness.findOrCreate()).rejects.toMatchObject(refusedBy("sandboxes", 1));
    const replacement = await harness.findOrCreate({
      ...{ scope, onExisting: "replace", claim: { force: { by: "local" } } },
    });
    expect(replacement.made).toBe(true);
    harness.box(sandbox.id).reportAs("destroyed");
    await expect(harness.findOrCreate()).rejects.toMatchObject(refusedBy("sandboxes", 1));
    harness.box(replacement.sandbox.id).reportAs("destroyed");
    expect((await harness.findOrCreate()).made).toBe(true);
  });

  it("[O44] bounds creates within a minute, destroyed ones too", async () => {
    allow("*:createsPerMinute=2");
    for (let n = 0; n < 2; n += 1) {
      const { sandbox } = await harness.findOrCreate();
      harness.box(sandbox.id).reportAs("destroyed");
    }
    await expect(harness.findOrCreate()).rejects.toMatchObject(refusedBy("createsPerMinute", 2));
    await harness.pass(60_000);
    expect((await harness.findOrCreate()).made).toBe(true);
  });

  it("[O44] holds for the members that a plan creates", async () => {
    allow("local:sandboxes=1");
    await harness.directory.make(harness.call({}).make);
    await expect(harness.directory.make(harness.call({}).make)).rejects.toMatchObject(
      refusedBy("sandboxes", 1),
    );
  });

  it("[O44] is read by tenant, with `*` for all others, and a text that is not valid names its entry", () => {
    const quotas = parseQuotas("acme:sandboxes=50,createsPerMinute=30  *:sandboxes=20");
    expect(quotaOf(quotas, "acme")).toEqual({ sandboxes: 50, createsPerMinute: 30 });
    expect(quotaOf(quotas, "other")).toEqual({ sandboxes: 20 });
    expect(quotaOf(parseQuotas(""), "acme")).toEqual({});
    for (const text of ["acme", "acme:", "acme:sandboxes", "acme:cpu=1", "acme:sandboxes=-1"])
      expect(() => parseQuotas(text), text).toThrow(/^acme:? ?/);
    expect(() => parseQuotas("a:cpu=1")).toThrow("sandboxes, createsPerMinute, callsAtOnce");
    expect(() => parseQuotas("a:sandboxes=1 a:sandboxes=2")).toThrow("a:sandboxes=2");
  });
});
