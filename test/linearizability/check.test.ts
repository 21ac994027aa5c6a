import { describe, expect, it } from "vitest";
import { newLease } from "../../src/core/lease/lease.ts";
import { stepLease } from "../../src/core/lease/step.ts";
import { emptyMetadata, patchMetadata } from "../../src/core/metadata/patch.ts";
import { checkHistory } from "./check.ts";
import {
  doubleGrant,
  type LeaseOperation,
  lostUpdate,
  type MetadataOperation,
  sameFence,
  staleRead,
} from "./faults.ts";
import { history, type Random, randomOf } from "./history.ts";
import { type LeaseInput, type LeaseOutput, leaseModel } from "./lease-model.ts";
import { type MetadataInput, type MetadataOutput, metadataModel } from "./metadata-model.ts";

const histories = 300;
const plan = { clients: 6, calls: 8, lostOf100: 5 };

/** The real lease with clients that acquire, renew and release. */
function leaseHistory(random: Random): LeaseOperation[] {
  let lease = newLease;
  let wishes = 0;
  const object = ({ verb, who }: LeaseInput): LeaseOutput => {
    const wish = { ticket: who, token: who, holder: who, ttlMs: 1_000, queueMs: 0 };
    const events = {
      acquire: { type: "acquire", ...wish },
      renew: { type: "renew", token: who },
      release: { type: "release", token: who, force: false },
      lose: { type: "tick" },
    } as const;
    const { lease: after, reply } = stepLease(lease, events[verb], 0, { own: 0, others: 0 });
    const held = lease.state.name === "held" ? lease.state.grant.holder : undefined;
    lease = after;
    if ("refuse" in reply) return verb === "acquire" ? { refused: held } : { lost: true };
    return verb === "acquire" ? { granted: after.fence } : { done: true };
  };
  return history<LeaseInput, LeaseOutput>(
    random,
    plan,
    (client, last) => {
      wishes += 1;
      const wish = { verb: "acquire", who: `${client}-${wishes}` } as const;
      if (last === undefined) return wish;
      const { input, output } = last;
      if (output === undefined) return input;
      if ("granted" in output || (input.verb === "renew" && "done" in output)) {
        return { verb: random(3) === 0 ? "renew" : "release", who: input.who };
      }
      return wish;
    },
    object,
  );
}

/** The real metadata, patched, sometimes with a condition, and read. */
function metadataHistory(random: Random): MetadataOperation[] {
  let now = emptyMetadata;
  return history<MetadataInput, MetadataOutput>(
    random,
    plan,
    () => {
      if (random(3) === 0) return { verb: "get" };
      const value = random(4) === 0 ? null : `${random(1_000)}`;
      const condition = random(4) === 0 ? { ifMatch: Math.max(0, now.version - random(2)) } : {};
      return { verb: "patch", patch: { [`key ${random(3)}`]: value }, ...condition };
    },
    (input) => {
      if (input.verb === "patch") {
        const changed = patchMetadata(now, input.patch, input.ifMatch);
        if ("refuse" in changed) return { mismatch: true };
        now = changed.next;
      }
      return { metadata: { ...now.map }, version: now.version };
    },
  );
}

/** How many histories the fault applied to, and in how many it was found. */
function flagged<One>(
  make: (random: Random) => One[],
  fault: (all: One[], random: Random) => One[] | undefined,
  linear: (all: One[]) => boolean,
) {
  let injected = 0;
  let found = 0;
  for (let seed = 0; seed < histories; seed += 1) {
    const random = randomOf(seed);
    const broken = fault(make(random), random);
    if (broken === undefined) continue;
    injected += 1;
    if (!linear(broken)) found += 1;
  }
  return { injected, found };
}

const leaseIsLinear = (all: LeaseOperation[]) => checkHistory(leaseModel, all).linear;
const metadataIsLinear = (all: MetadataOperation[]) => checkHistory(metadataModel, all).linear;

describe("the checker of histories", () => {
  it("[Q25] accepts histories of the real lease and the real metadata", () => {
    let granted = 0;
    let unanswered = 0;
    for (let seed = 0; seed < histories; seed += 1) {
      const leases = leaseHistory(randomOf(seed));
      const verdict = checkHistory(leaseModel, leases);
      expect(verdict, `lease history of seed ${seed}`).toMatchObject({ linear: true });
      const changes = metadataHistory(randomOf(seed));
      expect(checkHistory(metadataModel, changes), `metadata, seed ${seed}`).toMatchObject({
        linear: true,
      });
      granted += leases.filter(({ output }) => output && "granted" in output).length;
      unanswered += leases.filter(({ output }) => output === undefined).length;
    }
    expect(granted).toBeGreaterThan(histories);
    expect(unanswered).toBeGreaterThan(histories);
  });

  it.each([
    [
      "second grant while the first lease is certainly held",
      () => flagged(leaseHistory, doubleGrant, leaseIsLinear),
    ],
    ["fence that is given twice", () => flagged(leaseHistory, sameFence, leaseIsLinear)],
    [
      "version that two changes report",
      () => flagged(metadataHistory, lostUpdate, metadataIsLinear),
    ],
    [
      "stale read after a finished change",
      () => flagged(metadataHistory, staleRead, metadataIsLinear),
    ],
  ])("[Q25] finds every %s", (_, flag) => {
    const { injected, found } = flag();
    expect(injected).toBeGreaterThan(histories / 3);
    expect(found).toBe(injected);
  });

  const acquired = (who: string, call: number, output: LeaseOutput): LeaseOperation => ({
    ...{ input: { verb: "acquire", who }, output },
    ...{ call, back: call + 1 },
  });

  it("[Q25] treats an operation without a response as done or as not done, but never as done too early", () => {
    const lost: LeaseOperation = { input: { verb: "acquire", who: "a" }, call: 1, back: Infinity };
    expect(leaseIsLinear([lost, acquired("b", 2, { granted: 1 })])).toBe(true);
    const refused = acquired("b", 2, { refused: "a" });
    expect(leaseIsLinear([lost, refused])).toBe(true);
    expect(leaseIsLinear([{ ...lost, call: 9 }, refused])).toBe(false);
  });

  it("[Q25] accepts a grant after a lease may have expired, but not before", () => {
    const first = acquired("a", 1, { granted: 1 });
    const later = acquired("b", 11, { granted: 3 });
    const lose: LeaseOperation = { input: { verb: "lose", who: "a" }, call: 10, back: Infinity };
    expect(leaseIsLinear([first, lose, later])).toBe(true);
    expect(leaseIsLinear([first, lose, acquired("b", 4, { granted: 3 })])).toBe(false);
    expect(leaseIsLinear([first, later])).toBe(false);
  });

  it("[Q25] reports the longest explanation and what fits nowhere", () => {
    const get = (version: number, call: number): MetadataOperation => ({
      ...{ input: { verb: "get" }, output: { metadata: {}, version } },
      ...{ call, back: call + 1 },
    });
    const verdict = checkHistory(metadataModel, [get(0, 1), get(7, 3)]);
    expect(verdict).toMatchObject({ linear: false, explained: [get(0, 1)], stuck: [get(7, 3)] });
  });
});
