import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LeaseEvent, LossReason } from "../../../../src/core/lease/lease.ts";
import { LeaseHarness, minute, second } from "./harness.ts";
import { Oracle } from "./oracle.ts";

const name = fc.constantFrom("ann", "bob", "cid", "dan");
/** Mostly the holder uses its lease; now and then a former holder, or a caller that never had it. */
const holder = fc.constantFrom("holder", "holder", "holder", "holder", "ann", "bob", "cid", "dan");
/** One of these moves, with this weight. */
const moves = <Name extends string, Fields>(
  weight: number,
  names: Name[],
  fields: { [Field in keyof Fields]: fc.Arbitrary<Fields[Field]> },
) => {
  const parts = fc.tuple(fc.constantFrom(...names), fc.record<Fields>(fields));
  return { weight, arbitrary: parts.map(([which, rest]) => ({ do: which, ...rest })) };
};
const move = fc.oneof(
  moves(8, ["acquire"], {
    name,
    ttlMs: fc.constantFrom(second, 30 * second, 5 * minute),
    queueMs: fc.constantFrom(0, 15 * second, 60 * minute),
  }),
  moves(4, ["instance", "tick", "begin-unleased", "end-own", "end-others"], {}),
  moves(3, ["begin"], { name: holder }),
  moves(2, ["drained"], { below: fc.constantFrom(0, 0, 0, 1, 2) }),
  moves(2, ["release"], { name: holder, force: fc.boolean() }),
  moves(1, ["renew"], { name: holder, ttlMs: fc.option(fc.constant(2 * second)) }),
  moves(1, ["leave"], { name }),
  moves(1, ["take"], { reason: fc.constantFrom<LossReason>("broken", "forced", "disconnected") }),
);
const wait = fc.oneof(
  { weight: 40, arbitrary: fc.constantFrom(0, 0, 1, second) },
  { weight: 8, arbitrary: fc.constantFrom("to the deadline", "just before it") },
  { weight: 1, arbitrary: fc.constantFrom(10 * second, 30 * second, 10 * minute) },
);
type Move = typeof move extends fc.Arbitrary<infer M> ? M : never;

/** The real lease and the oracle side by side, with the calls in flight that both get as input. */
class Pair {
  readonly harness = new LeaseHarness();
  readonly oracle = new Oracle();
  readonly #tokens = new Map<string, string>();
  readonly #tickets = new Map<string, number>();
  #drawn = 0;

  pass(time: number | string): void {
    const dueAt = this.harness.deadline?.at ?? this.harness.now;
    const ms =
      typeof time === "number" ? time : dueAt - this.harness.now - (time.includes("just") ? 1 : 0);
    this.harness.after(Math.max(0, ms));
  }

  /** The results of both, in words. */
  apply(move: Move): [string, string] {
    const { harness, oracle } = this;
    const { inFlight, now } = harness;
    if (move.do === "end-own" || move.do === "end-others") return this.#end(move.do);
    const gated = move.do === "begin" || move.do === "begin-unleased";
    if (move.do === "instance") {
      harness.step({ type: "instance" });
      oracle.fence += 1;
    }
    oracle.applyTimeouts(now, inFlight);
    let said: string;
    let expected: string;
    if (gated) {
      const token = move.do === "begin" ? this.#tokenOf(move.name) : undefined;
      const use: LeaseEvent = token === undefined ? { type: "tick" } : { type: "used", token };
      harness.step(use);
      if (token !== undefined) oracle.renew(token, now);
      oracle.offerTurn(now, inFlight);
      [said, expected] = [harness.check(token), oracle.check(token)];
      const own = token !== undefined ? 1 : 0;
      if (said === "passes")
        harness.inFlight = { own: inFlight.own + own, others: inFlight.others + 1 - own };
    } else {
      const event = this.#event(move);
      const held = harness.lease.state.name === "held" ? harness.grant.token : undefined;
      said = harness.step(event);
      expected = this.#expected(event);
      oracle.offerTurn(now, inFlight);
      this.#note(move, said, held);
    }
    return [said, expected];
  }

  /** The end of a call first extends its lease, because it still counts then, and then stops counting. */
  #end(which: "end-own" | "end-others"): [string, string] {
    const { harness, oracle } = this;
    const { own, others } = harness.inFlight;
    if (which === "end-own" && own > 0) {
      const { token } = harness.grant;
      oracle.applyTimeouts(harness.now, harness.inFlight);
      const both: [string, string] = [harness.used(token), oracle.renew(token, harness.now)];
      harness.inFlight = { own: own - 1, others };
      return both;
    }
    if (which === "end-others" && others > 0) harness.inFlight = { own, others: others - 1 };
    oracle.applyTimeouts(harness.now, harness.inFlight);
    const said = harness.tick();
    oracle.offerTurn(harness.now, harness.inFlight);
    return [said, "done"];
  }

  #event(move: Move): LeaseEvent {
    if (move.do === "acquire") {
      this.#drawn += 1;
      const { ttlMs, queueMs } = move;
      const token = `token ${this.#drawn}`;
      const ticket = this.#ticketOf(move.name);
      return { type: "acquire", ticket, token, holder: move.name, ttlMs, queueMs };
    }
    if (move.do === "leave") return { type: "leave", ticket: this.#ticketOf(move.name) };
    if (move.do === "renew") {
      return { type: "renew", token: this.#tokenOf(move.name), ttlMs: move.ttlMs ?? undefined };
    }
    if (move.do === "release") {
      return { type: "release", token: this.#tokenOf(move.name), force: move.force };
    }
    if (move.do === "take") return { type: "take", reason: move.reason };
    if (move.do === "drained") {
      return { type: "drained", fence: this.harness.lease.fence - move.below };
    }
    return { type: "tick" };
  }

  #expected(event: LeaseEvent): string {
    const { oracle } = this;
    const { now, inFlight } = this.harness;
    if (event.type === "acquire") return oracle.acquire(event, now, inFlight);
    if (event.type === "leave") return oracle.leave(event.ticket);
    if (event.type === "renew") return oracle.renew(event.token, now, event.ttlMs);
    if (event.type === "release") return oracle.release(event.token, event.force, now, inFlight);
    if (event.type === "take") return oracle.take(event.reason, now);
    if (event.type === "drained") return oracle.drained(event.fence);
    return "done";
  }

  /** Calls of the loser in flight count as calls of others from then on. */
  #note(move: Move, said: string, held: string | undefined): void {
    const { harness } = this;
    const { state } = harness.lease;
    const holds = state.name === "held" ? state.grant : undefined;
    if (move.do === "acquire" && said === "granted")
      this.#tokens.set(move.name, harness.grant.token);
    if (move.do === "acquire" && said.startsWith("lease_lost")) {
      this.#tickets.set(move.name, (this.#tickets.get(move.name) ?? 0) + 1);
    }
    if (held !== undefined && holds?.token !== held) {
      harness.inFlight = { own: 0, others: harness.inFlight.others + harness.inFlight.own };
    }
  }

  #tokenOf(who: string): string {
    const { state } = this.harness.lease;
    if (who === "holder" && state.name === "held") return state.grant.token;
    return this.#tokens.get(who) ?? `never given to ${who}`;
  }

  /** A caller whose lease has ended uses a new ticket the next time. */
  #ticketOf(who: string): string {
    return `${who} ${this.#tickets.get(who) ?? 0}`;
  }
}

const words = [
  ...["granted", "queued 1", "queued 2", "lease_held", "lease_pending", "passes", "draining"],
  ...["released", "lease_busy", "lease_lost expired", "lease_lost unused"],
  ...["lease_lost released", "lease_lost broken"],
];

describe("any order of calls and any timing", () => {
  it("[Q23] the lease agrees with an independent model of its rules", () => {
    const seen = new Map<string, number>();
    let grants = 0;
    fc.assert(
      fc.property(fc.array(fc.tuple(wait, move), { minLength: 30, maxLength: 80 }), (moves) => {
        const pair = new Pair();
        const { harness, oracle } = pair;
        for (const [time, move] of moves) {
          pair.pass(time);
          const before = harness.lease;
          const [said, expected] = pair.apply(move);
          expect(said).toBe(expected);
          expect(standing(harness)).toEqual(expectedStanding(oracle));
          expect(harness.lease.fence).toBeGreaterThanOrEqual(before.fence);
          const { deadline } = harness;
          if (deadline !== undefined) expect(deadline.at).toBeGreaterThan(harness.now);
          seen.set(said, (seen.get(said) ?? 0) + 1);
          if (harness.lease.fence > before.fence && harness.state === "held") grants += 1;
        }
      }),
      { numRuns: 1_000 },
    );
    expect(grants).toBeGreaterThan(1_000);
    for (const word of words) {
      expect(seen.get(word) ?? 0, word).toBeGreaterThan(10);
    }
  });

  it("[Q20] stepping only at deadlines ends every lease and every queue", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(wait, move), { minLength: 10, maxLength: 40 }), (moves) => {
        const pair = new Pair();
        const { harness } = pair;
        for (const [time, move] of moves) {
          pair.pass(time);
          pair.apply(move);
        }
        harness.inFlight = { own: 0, others: 0 };
        harness.tick();
        // One offer for each of four waiters, then a lease that expires and its drain.
        for (let looks = 0; harness.deadline !== undefined; looks += 1) {
          expect(looks).toBeLessThan(20);
          harness.now = harness.deadline.at;
          harness.tick();
          const { state } = harness.lease;
          if (state.name === "draining" && state.replace)
            harness.step({ type: "drained", fence: state.fence });
        }
        expect(harness.lease).toMatchObject({ state: { name: "free" }, waiters: [] });
      }),
      { numRuns: 500 },
    );
  });
});

function standing({ lease }: LeaseHarness) {
  const { state } = lease;
  const held = state.name === "held" ? state : undefined;
  return {
    state: state.name,
    fence: lease.fence,
    queue: lease.waiters.map(({ ticket }) => ticket),
    holder: held?.grant.token,
    until: "until" in state ? state.until : held?.expiresAt,
    useBy: held?.useBy,
    replace: state.name === "draining" ? state.replace : undefined,
    past: lease.ended.map(({ ticket, reason }) => `${ticket} ${reason}`),
  };
}

function expectedStanding({
  holder,
  drain,
  queue: line,
  fence,
  past,
}: Oracle): ReturnType<typeof standing> {
  const turn = line[0]?.turnUntil;
  const free = turn === undefined ? "free" : "offered";
  return {
    state: holder !== undefined ? "held" : drain !== undefined ? "draining" : free,
    fence,
    queue: line.map(({ ticket }) => ticket),
    holder: holder?.token,
    until: holder?.until ?? drain?.until ?? turn,
    useBy: holder?.useUntil,
    replace: drain?.overdue,
    past: past.map(({ ticket, reason }) => `${ticket} ${reason}`),
  };
}
