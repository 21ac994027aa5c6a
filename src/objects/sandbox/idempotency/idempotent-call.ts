/**
 * Owns calls with a key: at most once, the answer kept. A row stands before the agent is asked, its id is the agent's
 * key, and a repeated call joins what the agent knows of it. Does not own the rows (keyed-rows.ts), nor the agent's
 * part: it never runs one id twice.
 */
import { createHash } from "node:crypto";
import type { Life } from "../../../core/sandbox/record.ts";
import { BerthError, errors } from "../../../protocol/errors.ts";
import { limits } from "../../../protocol/limits.ts";
import { AgentSilent, callAgent } from "../../../runtime/agent-client.ts";
import type { Reply } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";
import { type Ask, askGated } from "../agent/agent-request.ts";
import { type GatedCaller, type Passed, pass } from "../lease/gated.ts";
import { refuseWhenOver } from "../lifecycle/lifecycle.ts";
import type { KeyedRow } from "./key-rows.ts";
import { type Learnt, notRun, passOnKept } from "./response-outcome.ts";

/** One call, as it is sent and as it is asked for. */
export type Work = {
  /** What makes two calls the same: the verb, what its path names, the checked call. */
  same: readonly unknown[];
  requestId: string;
  /** For no longer than this it can be under way. */
  lastsMs: number;
  mint: (life: Life) => string;
  send: (id: string) => Ask;
  /** Begins nothing. */
  again: (id: string) => Ask;
  /** The call that was sent has ended. */
  done: (id: string) => void;
};

/** Each round ends with an answer, or with somebody else's call under the same key, which the next one joins. */
const roundsMax = 5;

export async function keyed(
  actor: SandboxActor,
  caller: GatedCaller,
  key: string,
  work: Work,
): Promise<Reply> {
  const hash = hashOf(work.same);
  const { keyedUnderWay } = actor;
  for (let round = 0; round < roundsMax; round++) {
    // Whoever is first may still stand at the gate, or be on the way to the agent; and who is next, where he is refused.
    while (keyedUnderWay.has(key)) await keyedUnderWay.get(key);
    refuseWhenOver(actor);
    const row = find(actor, key, hash);
    const known = row === undefined ? undefined : await repeated(actor, row, work);
    if (known !== undefined) return known;
    // Several have found that the agent does not know it. Where one is refused the row goes: nobody else may have sent it.
    if (keyedUnderWay.has(key)) continue;
    const reply = await begin(actor, caller, { key, hash, row }, work);
    if (reply !== undefined) return reply;
  }
  throw new BerthError("unavailable", "Other calls with the same key came in between.", {
    hint: "Repeat the call with the same key.",
  });
}

/** Needs no lease: it starts nothing. Undefined: its life has never begun it. */
async function repeated(
  actor: SandboxActor,
  row: KeyedRow,
  work: Work,
): Promise<Reply | undefined> {
  // An earlier instance may have sent it just before it ended: from here on that comes too late.
  await actor.link.alive();
  const life = lifeOf(actor, row);
  const response = await ask(actor, life, row, work);
  if (response.status === errors.stale_fence.status) {
    // It waited for its turn when its lease was lost, and was not run: whoever asks again stands at the gate.
    await response.body?.cancel();
    return undefined;
  }
  if (response.status !== errors.not_found.status) {
    const learnt = learns(actor, row);
    try {
      return await passOnKept(actor, response, { life, requestId: work.requestId, learnt });
    } catch (error) {
      throw error instanceof BerthError ? unanswered(actor, row) : error;
    }
  }
  await response.body?.cancel();
  if (row.outcome !== undefined) throw gone(row);
  if (actor.now() - row.at < limits.keyMs) return undefined;
  throw new BerthError("operation_interrupted", "What became of the call is not known any more.", {
    hint: "Look at what it may have done, and repeat it with a new key.",
    facts: { admitted: "unknown" },
  });
}

async function ask(actor: SandboxActor, life: Life, row: KeyedRow, work: Work): Promise<Response> {
  try {
    return await callAgent(actor.reach, life, work.again(row.id));
  } catch (error) {
    if (!(error instanceof AgentSilent)) throw error;
    if (actor.known !== undefined) await actor.link.confirm(life);
    throw unanswered(actor, row);
  }
}

/** What was asked for is kept still, or gone with its life. */
function unanswered(actor: SandboxActor, row: KeyedRow): BerthError {
  refuseWhenOver(actor);
  lifeOf(actor, row);
  return new BerthError("unavailable", "The sandbox does not answer just now.", {
    hint: "Repeat the call with the same key.",
  });
}

type Named = { key: string; hash: string; row: KeyedRow | undefined };

/** Past the gate like any call. Undefined: meanwhile somebody else has used the key. */
async function begin(
  actor: SandboxActor,
  caller: GatedCaller,
  named: Named,
  work: Work,
): Promise<Reply | undefined> {
  const { key } = named;
  const way = Promise.withResolvers<void>();
  actor.keyedUnderWay.set(key, way.promise);
  try {
    const passed = await pass(actor, caller);
    const row = enter(actor, passed, named, work);
    if (row === undefined) return undefined;
    const response = await send(actor, passed, row, work);
    const reply = answered(actor, passed, response, row, work);
    // A refusal is known as that once it is read: until then nobody else sends it.
    return response.ok ? reply : await reply;
  } finally {
    actor.keyedUnderWay.delete(key);
    way.resolve();
  }
}

async function answered(
  actor: SandboxActor,
  passed: Passed,
  response: Response,
  row: KeyedRow,
  work: Work,
): Promise<Reply> {
  const done = () => {
    passed.end();
    work.done(row.id);
  };
  try {
    const { life } = passed;
    const learnt = learns(actor, row);
    return await passOnKept(actor, response, { life, requestId: work.requestId, learnt, done });
  } catch (error) {
    done();
    throw error;
  }
}

/** In one synchronous piece: a second look at the key, and its row. */
function enter(
  actor: SandboxActor,
  passed: Passed,
  { key, hash, row }: Named,
  work: Work,
): KeyedRow | undefined {
  const { incarnation } = passed.life;
  try {
    const known = find(actor, key, hash);
    if (known?.id !== row?.id) {
      passed.end();
      return undefined;
    }
    if (known === undefined) {
      const made = { key, hash, incarnation, id: work.mint(passed.life) };
      actor.keyedRows.insert(made, work.lastsMs);
      return { ...made, at: actor.now(), outcome: undefined };
    }
    if (known.incarnation !== incarnation) throw gone(known);
    return known;
  } catch (error) {
    passed.end();
    throw error;
  }
}

async function send(
  actor: SandboxActor,
  passed: Passed,
  row: KeyedRow,
  work: Work,
): Promise<Response> {
  let isSent = false;
  try {
    await actor.host.durable();
    const ask = work.send(row.id);
    isSent = true;
    return await askGated(actor, passed, ask);
  } catch (error) {
    const isRefused = error instanceof BerthError && (!isSent || notRun.has(error.code));
    if (isRefused && actor.known !== undefined) actor.keyedRows.forget(row);
    passed.end();
    work.done(row.id);
    throw error;
  }
}

function find(actor: SandboxActor, key: string, hash: string): KeyedRow | undefined {
  const row = actor.keyedRows.find(key);
  if (row === undefined || row.hash === hash) return row;
  throw new BerthError("idempotency_mismatch", "The key was used before, with another call.", {
    hint: "Use a new Idempotency-Key for each new call.",
    facts: { field: "Idempotency-Key" },
  });
}

function learns(actor: SandboxActor, row: KeyedRow): (learnt: Learnt) => void {
  return (learnt) => {
    // The sandbox may have been forgotten meanwhile, with all its rows.
    if (actor.known === undefined) return;
    if (learnt === "not run") actor.keyedRows.forget(row);
    else if (row.outcome === undefined) actor.keyedRows.learn(row, learnt);
  };
}

/** The life that it was meant for, while it lives. */
function lifeOf(actor: SandboxActor, row: KeyedRow): Life {
  const { state } = actor.facts.sandbox;
  if (state.name === "running" && state.life.incarnation === row.incarnation) return state.life;
  throw gone(row);
}

function gone({ outcome }: KeyedRow): BerthError {
  if (outcome !== undefined) {
    return new BerthError("result_gone", "The call was done; its answer is no longer kept.", {
      hint: "Files written before stay; look at them before you repeat the call with a new key.",
      facts: outcome,
    });
  }
  return new BerthError("operation_interrupted", "The container was lost under the call.", {
    hint: "What it did before stays done; look at it before you repeat the call with a new key.",
    facts: { admitted: true },
  });
}

function hashOf(same: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(same, inOrder)).digest("base64url");
}

/** Two callers may write the same fields in another order. */
function inOrder(_name: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
