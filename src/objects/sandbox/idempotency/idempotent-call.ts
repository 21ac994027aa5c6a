/**
 * Runs a call with an idempotency key at most once and keeps its result. A row with the id of the call is written
 * before the agent gets it, and a repeated call joins what the agent knows of that id; the agent never runs one id
 * twice.
 */
import { createHash } from "node:crypto";
import type { Incarnation } from "../../../core/sandbox/record.ts";
import { BerthError, errors } from "../../../protocol/errors.ts";
import { limits } from "../../../protocol/limits.ts";
import { AgentUnreachable } from "../../../runtime/agent-client.ts";
import type { WireResponse } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";
import type { AgentRequest } from "../agent/agent-client.ts";
import { type AdmittedCall, admitGatedCall, type GatedCaller } from "../lease/gated-admission.ts";
import type { KeyRow } from "./key-rows.ts";
import { type CallOutcome, forwardWithOutcome, refusedBeforeRun } from "./response-outcome.ts";

/** One call: how it is sent, and how its result is looked up. */
type IdempotentCall = {
  actor: SandboxActor;
  caller: GatedCaller;
  key: string;
  /** What makes two calls the same: the verb, the ids of its path, the checked call. */
  identity: readonly unknown[];
  requestId: string;
  /** The longest time for which the call can run. */
  lastsMs: number;
  generateId: (agent: Incarnation) => string;
  send: (id: string) => AgentRequest;
  /** Looks up the result; starts nothing. */
  lookUp: (id: string) => AgentRequest;
  /** Called when the call that was sent has ended. */
  onDone?: (id: string) => void;
};

type HashedCall = IdempotentCall & { hash: string };

/** Each round ends with a result, or finds another call under the same key, which the next round joins. */
const roundsMax = 5;

export async function runIdempotent(options: IdempotentCall): Promise<WireResponse> {
  const call = { ...options, hash: hashIdentity(options.identity) };
  const { actor, key } = call;
  const { keysInFlight } = actor;
  for (let round = 0; round < roundsMax; round++) {
    // The first call may still wait for its admission or for the agent; if it is refused, the next one takes over.
    while (keysInFlight.has(key)) await keysInFlight.get(key);
    actor.refuseIfDestroyed();
    const row = findRow(call);
    const joined = row === undefined ? undefined : await joinRepeated(call, row);
    if (joined !== undefined) return joined;
    // Several calls may have found that the agent does not know the id. If one is refused its row goes, so only one
    // may send at a time.
    if (keysInFlight.has(key)) continue;
    const result = await runFirst(call, row);
    if (result !== undefined) return result;
  }
  throw new BerthError("unavailable", "Other calls used the same key meanwhile.", {
    hint: "Repeat the call with the same key.",
  });
}

/** Looks up the result; needs no lease, because it starts nothing. Undefined if the call's incarnation never ran it. */
async function joinRepeated(call: HashedCall, row: KeyRow): Promise<WireResponse | undefined> {
  const { actor, requestId } = call;
  // An earlier instance may have sent it just before it ended; after this handshake that comes too late.
  await actor.link.ensureAlive();
  const agent = agentOf(actor, row);
  const response = await lookUpResponse(call, agent, row);
  if (response.status === errors.stale_fence.status) {
    // The call waited for its turn when its lease was lost, and did not run: it needs a new admission.
    await response.body?.cancel();
    return undefined;
  }
  if (response.status !== errors.not_found.status) {
    const onOutcome = outcomeSaver(actor, row);
    try {
      return await forwardWithOutcome(actor, response, { agent, requestId, onOutcome });
    } catch (error) {
      throw error instanceof BerthError ? noResponseError(actor, row) : error;
    }
  }
  await response.body?.cancel();
  if (row.outcome !== undefined) throw goneError(row);
  if (actor.now() - row.at < limits.keyMs) return undefined;
  throw new BerthError("operation_interrupted", "The outcome of the call is no longer stored.", {
    hint: "Check what it may have done, and repeat it with a new key.",
    facts: { admitted: "unknown" },
  });
}

async function lookUpResponse(
  { actor, lookUp }: HashedCall,
  agent: Incarnation,
  row: KeyRow,
): Promise<Response> {
  try {
    return await actor.agentClient.send(agent, lookUp(row.id));
  } catch (error) {
    if (!(error instanceof AgentUnreachable)) throw error;
    if (actor.existing !== undefined) await actor.link.recheck(agent);
    throw noResponseError(actor, row);
  }
}

/** The result is still retained, or gone with its incarnation. */
function noResponseError(actor: SandboxActor, row: KeyRow): BerthError {
  actor.refuseIfDestroyed();
  agentOf(actor, row);
  return new BerthError("unavailable", "The sandbox does not respond.", {
    hint: "Repeat the call with the same key.",
  });
}

/** Sends the call, gated like any other. Undefined if another call has used the key in the meantime. */
async function runFirst(
  call: HashedCall,
  known: KeyRow | undefined,
): Promise<WireResponse | undefined> {
  const { actor, caller, key } = call;
  const finished = Promise.withResolvers<void>();
  actor.keysInFlight.set(key, finished.promise);
  try {
    const admitted = await admitGatedCall(actor, caller);
    const row = insertRow(call, admitted, known);
    if (row === undefined) return undefined;
    const response = await send(call, admitted, row);
    const result = forwardFirst(call, admitted, response, row);
    // Waits until a refusal has been read: until then no other call may send.
    return response.ok ? result : await result;
  } finally {
    actor.keysInFlight.delete(key);
    finished.resolve();
  }
}

async function forwardFirst(
  call: HashedCall,
  admitted: AdmittedCall,
  response: Response,
  row: KeyRow,
): Promise<WireResponse> {
  const { actor, requestId } = call;
  const { agent } = admitted;
  const onOutcome = outcomeSaver(actor, row);
  const onDone = () => {
    admitted.end();
    call.onDone?.(row.id);
  };
  try {
    return await forwardWithOutcome(actor, response, { agent, requestId, onOutcome, onDone });
  } catch (error) {
    onDone();
    throw error;
  }
}

/** Checks the key again and inserts its row, in one synchronous step. */
function insertRow(
  call: HashedCall,
  admitted: AdmittedCall,
  known: KeyRow | undefined,
): KeyRow | undefined {
  const { actor, key, hash } = call;
  const { incarnation } = admitted.agent;
  try {
    const stored = findRow(call);
    if (stored?.id !== known?.id) {
      admitted.end();
      return undefined;
    }
    if (stored === undefined) {
      const newRow = { key, hash, incarnation, id: call.generateId(admitted.agent) };
      actor.keyRows.insert(newRow, call.lastsMs);
      return { ...newRow, at: actor.now(), outcome: undefined };
    }
    if (stored.incarnation !== incarnation) throw goneError(stored);
    return stored;
  } catch (error) {
    admitted.end();
    throw error;
  }
}

async function send(call: HashedCall, admitted: AdmittedCall, row: KeyRow): Promise<Response> {
  const { actor } = call;
  let isSent = false;
  try {
    await actor.host.flush();
    const request = call.send(row.id);
    isSent = true;
    return await actor.agentClient.sendGated(admitted, request);
  } catch (error) {
    const isRefused = error instanceof BerthError && (!isSent || refusedBeforeRun.has(error.code));
    if (isRefused && actor.existing !== undefined) actor.keyRows.remove(row);
    admitted.end();
    call.onDone?.(row.id);
    throw error;
  }
}

function findRow({ actor, key, hash }: HashedCall): KeyRow | undefined {
  const row = actor.keyRows.find(key);
  if (row === undefined || row.hash === hash) return row;
  throw new BerthError("idempotency_mismatch", "The key was already used for another call.", {
    hint: "Use a new Idempotency-Key for each new call.",
    facts: { field: "Idempotency-Key" },
  });
}

function outcomeSaver(actor: SandboxActor, row: KeyRow): (outcome: CallOutcome) => void {
  return (outcome) => {
    // The sandbox may have been deleted in the meantime, with all its rows.
    if (actor.existing === undefined) return;
    if (outcome === "not run") actor.keyRows.remove(row);
    else if (row.outcome === undefined) actor.keyRows.saveOutcome(row, outcome);
  };
}

/** The agent that the call was meant for, if it still runs. */
function agentOf({ runningAgent }: SandboxActor, row: KeyRow): Incarnation {
  if (runningAgent?.incarnation === row.incarnation) return runningAgent;
  throw goneError(row);
}

function goneError({ outcome }: KeyRow): BerthError {
  if (outcome !== undefined) {
    return new BerthError(
      "result_gone",
      "The call completed, but its result is no longer stored.",
      {
        hint: "Files that it wrote are kept. Check them before you repeat the call with a new key.",
        facts: outcome,
      },
    );
  }
  return new BerthError(
    "operation_interrupted",
    "The container was lost while the call was running.",
    {
      hint: "The call may have taken effect. Check before you repeat it with a new key.",
      facts: { admitted: true },
    },
  );
}

function hashIdentity(identity: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(identity, sortKeys)).digest("base64url");
}

/** Two callers may write the same fields in another order. */
function sortKeys(_name: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
