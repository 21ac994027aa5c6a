import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { checkHistory, type Operation } from "../../linearizability/check.ts";
import { type Random, randomOf } from "../../linearizability/history.ts";
import {
  type LeaseInput,
  type LeaseOutput,
  leaseModel,
} from "../../linearizability/lease-model.ts";
import {
  type MetadataInput,
  type MetadataOutput,
  metadataModel,
} from "../../linearizability/metadata-model.ts";
import * as api from "../api.ts";
import { call, createSandbox, json, pathOf, stubOf } from "../calls.ts";

const clients = 7;
const callsEach = 7;
const historiesMax = 100;
/** The number of crashes: each loses calls in flight, and a call without a response doubles the work of the checker. */
const crashesMax = 1;
/** For each of the two tests. */
const budgetMs = 10_000;

/** Calls and responses on one shared clock. */
class Recorder<Input, Output> {
  readonly operations: Operation<Input, Output>[] = [];
  #at = 0;

  /** Without a response a call may have happened, then or later, or never. */
  async run(input: Input, ask: () => Promise<Output | undefined>): Promise<Output | undefined> {
    this.#at += 1;
    const call = this.#at;
    const output = await ask();
    this.#at += 1;
    const back = output === undefined ? Number.POSITIVE_INFINITY : this.#at;
    this.operations.push({ input, call, back, ...(output === undefined ? {} : { output }) });
    return output;
  }
}

/** Crashes, evicts and rings until the callers are done; returns the number of crashes. */
async function disturb(id: string, random: Random, done: () => boolean): Promise<number> {
  let crashes = 0;
  while (!done()) {
    const stub = stubOf(id);
    const kind = random(4);
    if (kind === 0) await runDurableObjectAlarm(stub).catch(() => undefined);
    else if (crashes === crashesMax) {
      await evictDurableObject(stub).catch(() => undefined);
    } else {
      await api.crash(stub);
      crashes += 1;
    }
    await new Promise((resolve) => setTimeout(resolve, random(12)));
  }
  return crashes;
}

/** The object was lost during the call. */
function isCutOff(answer: { error?: { code: string } }): boolean {
  return answer.error?.code === "operation_interrupted" || answer.error?.code === "internal";
}

async function together(id: string, random: Random, work: Promise<void>[]): Promise<number> {
  let over = false;
  const all = Promise.all(work).finally(() => {
    over = true;
  });
  const crashes = await disturb(id, random, () => over);
  await all;
  return crashes;
}

/** Each acquire has a ticket, by which the model knows it; the token of a grant stands for it. */
async function leaseHistory(seed: number) {
  const random = randomOf(seed);
  const id = await createSandbox();
  const recorder = new Recorder<LeaseInput, LeaseOutput>();
  let grants = 0;

  const acquire = async (
    who: string,
    waitMs: number,
  ): Promise<[LeaseOutput | undefined, string | undefined]> => {
    const answer = await json(
      call("POST", pathOf(id, "/lease"), {
        body: { holder: who, ticket: who.padEnd(16, "_"), ttlMs: 300_000, waitMs },
      }),
    );
    if (isCutOff(answer)) return [undefined, undefined];
    if (typeof answer.token === "string") {
      grants += 1;
      return [{ granted: answer.fence }, answer.token];
    }
    // Its wait limit is almost over: it may ask again, or be forgotten.
    if (typeof answer.ticket === "string") return [{ refused: undefined }, undefined];
    if (answer.error.code === "lease_lost") return [{ lost: true }, undefined];
    expect(["lease_held", "lease_pending", "lease_wait_timeout"]).toContain(answer.error.code);
    return [{ refused: answer.error.holder }, undefined];
  };
  const withToken = async (method: string, token: string): Promise<LeaseOutput | undefined> => {
    const body = method === "PUT" ? {} : undefined;
    const headers = { "berth-lease": token };
    const answer = await json(call(method, pathOf(id, "/lease"), { body, headers }));
    if (isCutOff(answer)) return undefined;
    if (answer.error === undefined) return { done: true };
    expect(answer.error.code).toBe("lease_lost");
    return { lost: true };
  };

  const client = async (name: number, mine: Random) => {
    let wish = 0;
    let held: { who: string; token: string } | undefined;
    for (let n = 0; n < callsEach; n++) {
      if (held === undefined) {
        wish += 1;
        const who = `${name}-${wish}`;
        const repeats = mine(4) === 0 ? 2 : 1;
        for (let repeat = 0; repeat < repeats; repeat++) {
          await recorder.run({ verb: "acquire", who }, async () => {
            const [output, token] = await acquire(who, mine(3) === 0 ? 100 : 0);
            if (token !== undefined) held = { who, token };
            return output;
          });
        }
        continue;
      }
      const { who, token }: { who: string; token: string } = held;
      const verb = mine(3) === 0 ? "renew" : "release";
      await recorder.run({ verb, who }, () =>
        withToken(verb === "renew" ? "PUT" : "DELETE", token),
      );
      if (verb === "release" && mine(4) > 0) held = undefined;
    }
    if (held !== undefined) {
      const { who, token }: { who: string; token: string } = held;
      await recorder.run({ verb: "release", who }, () => withToken("DELETE", token));
    }
  };
  const work = Array.from({ length: clients }, (_, name) => client(name, randomOf(seed + name)));
  const crashes = await together(id, random, work);
  return { operations: recorder.operations, crashes, grants };
}

async function metadataHistory(seed: number) {
  const random = randomOf(seed);
  const id = await createSandbox();
  const recorder = new Recorder<MetadataInput, MetadataOutput>();
  const ask = async (input: MetadataInput): Promise<MetadataOutput | undefined> => {
    const path = pathOf(id, "/metadata");
    const headers: Record<string, string> = {};
    if (input.verb === "patch" && input.ifMatch !== undefined) {
      headers["if-match"] = `"${input.ifMatch}"`;
    }
    const answer = await json(
      input.verb === "get"
        ? call("GET", path)
        : call("PATCH", path, { body: input.patch, headers }),
    );
    if (isCutOff(answer)) return undefined;
    if (answer.error?.code === "version_mismatch") return { mismatch: true };
    return { metadata: answer.metadata, version: answer.version };
  };
  const client = async (name: number, mine: Random) => {
    let seen = 0;
    for (let n = 0; n < callsEach; n++) {
      const key = `k${mine(3)}`;
      const value = mine(4) === 0 ? null : `${name}-${n}`;
      const conditional = mine(3) === 0 ? { ifMatch: seen } : {};
      const input: MetadataInput =
        mine(3) === 0
          ? { verb: "get" }
          : { verb: "patch", patch: { [key]: value }, ...conditional };
      const output = await recorder.run(input, () => ask(input));
      if (output !== undefined && "version" in output) seen = output.version;
    }
  };
  const work = Array.from({ length: clients }, (_, name) => client(name, randomOf(seed + name)));
  const crashes = await together(id, random, work);
  return { operations: recorder.operations, crashes };
}

function overlaps(operations: Operation<unknown, unknown>[]): number {
  return operations.filter((operation) =>
    operations.some(
      (other) => other !== operation && other.call < operation.call && operation.call < other.back,
    ),
  ).length;
}

describe("histories through the Worker, with crashes, evictions and alarms in between", () => {
  it("[Y30] of a lease are linearizable", async () => {
    const began = performance.now();
    const seen = { histories: 0, calls: 0, overlaps: 0, crashes: 0, grants: 0 };
    for (let seed = 1; seed <= historiesMax && performance.now() - began < budgetMs; seed++) {
      const { operations, crashes, grants } = await leaseHistory(seed * 1000);
      const verdict = checkHistory(leaseModel, operations);
      expect(verdict, `seed ${seed}`).toMatchObject({ linear: true });
      seen.histories += 1;
      seen.calls += operations.length;
      seen.overlaps += overlaps(operations);
      seen.crashes += crashes;
      seen.grants += grants;
    }
    console.log(JSON.stringify(seen));
    expect(seen.histories).toBeGreaterThanOrEqual(5);
    expect(seen.grants).toBeGreaterThan(seen.histories * 3);
    expect(seen.overlaps).toBeGreaterThan(seen.calls / 2);
    expect(seen.crashes).toBeGreaterThan(seen.histories / 2);
  });

  it("[Y30] of metadata are linearizable", async () => {
    const began = performance.now();
    const seen = { histories: 0, calls: 0, overlaps: 0, crashes: 0 };
    for (let seed = 1; seed <= historiesMax && performance.now() - began < budgetMs; seed++) {
      const { operations, crashes } = await metadataHistory(seed * 1000);
      const verdict = checkHistory(metadataModel, operations);
      expect(verdict, `seed ${seed}`).toMatchObject({ linear: true });
      seen.histories += 1;
      seen.calls += operations.length;
      seen.overlaps += overlaps(operations);
      seen.crashes += crashes;
    }
    console.log(JSON.stringify(seen));
    expect(seen.histories).toBeGreaterThanOrEqual(5);
    expect(seen.overlaps).toBeGreaterThan(seen.calls / 2);
    expect(seen.crashes).toBeGreaterThan(seen.histories / 2);
  });
});
