/**
 * Owns a gated call on a process, a session, a terminal or files: past the gate, to the agent, the answer passed on
 * untouched; and what begins by it, told to the events.
 * Does not own commands (exec.ts), nor calls with a key (keyed.ts).
 */
import type { Life } from "../../../core/sandbox/record.ts";
import type { EventData } from "../../../protocol/event.ts";
import { mintHandle } from "../../../protocol/fields/handle.ts";
import { agentPaths } from "../../../protocol/internal/agent.ts";
import { limits } from "../../../protocol/limits.ts";
import type { Reply } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";
import { type Ask, askGated } from "../agent/agent-request.ts";
import { type Coming, passOn } from "../agent/forward-response.ts";
import { type Handle, refuseStale, refuseUnknown, runningLife } from "../agent/handles.ts";
import { keyed } from "../idempotency/idempotent-call.ts";
import { type GatedCaller, pass } from "../lease/gated.ts";

export type Call = { actor: SandboxActor; caller: GatedCaller; requestId: string };

/** `named` is there already. */
export async function callOn(
  call: Call,
  named: Handle,
  ask: Omit<Ask, "requestId">,
): Promise<Reply> {
  refuseUnknown(call.actor, named);
  return throughGate(call, () => {
    // While it waited at the gate the life may have become another.
    refuseUnknown(call.actor, named);
    return ask;
  });
}

export type Beginning = {
  kind: Handle["kind"];
  /** Chosen by the caller; else one is minted. */
  id?: string | undefined;
  /** Of a process: what makes two calls with one key the same. */
  same?: readonly unknown[];
  /** In which it begins. */
  session?: string | undefined;
  /** For no longer than this its start can be under way at the agent. */
  lastsMs?: number;
  send: (id: string) => Omit<Ask, "requestId">;
};

/** Something begins, or is there already. */
export async function begin(call: Call, beginning: Beginning): Promise<Reply> {
  const { actor, caller, requestId } = call;
  const { kind, session, same = [] } = beginning;
  const mint = (life: Life) => mintHandle(kind, life.incarnation, actor.host.draw);
  let begun: { id: string; incarnation: string } | undefined;
  let isTold: (() => void) | undefined;
  const check = () => {
    if (session !== undefined) refuseUnknown(actor, { kind: "session", id: session });
    if (beginning.id !== undefined) refuseStale(actor, { kind, id: beginning.id });
  };
  const send = (id: string): Ask => {
    check();
    begun = { id, incarnation: runningLife(actor)?.incarnation ?? "" };
    isTold?.();
    isTold = actor.work.begins(id);
    return { ...beginning.send(id), requestId };
  };
  check();
  try {
    const reply = await (caller.key === undefined
      ? throughGate(call, (life) => send(beginning.id ?? mint(life)))
      : keyed(actor, caller, caller.key, {
          ...{ same, requestId, mint, send },
          lastsMs: beginning.lastsMs ?? limits.agentHeadersMs,
          again: (id) => ({ method: "GET", path: `${agentPaths.processes}/${id}`, requestId }),
          done: () => undefined,
        }));
    if (reply.status === 201 && begun !== undefined && actor.known !== undefined) {
      const sessionId = session === undefined ? {} : { sessionId: session };
      const event: EventData = { type: kind, what: "started", ...begun, ...sessionId };
      actor.commit({}, [event], `${kind} started`);
    }
    return reply;
  } finally {
    isTold?.();
  }
}

/** `ask` is called once it is past the gate; the answer is told as `tell` does. */
export async function throughGate(
  { actor, caller, requestId }: Call,
  ask: (life: Life) => Omit<Ask, "requestId">,
  tell: (response: Response, coming: Coming) => Reply | Promise<Reply> = (response, coming) =>
    passOn(actor, response, coming),
): Promise<Reply> {
  const passed = await pass(actor, caller);
  const { life, end: done } = passed;
  const leave = () => {
    actor.link.abandoned(life);
    done();
  };
  try {
    const response = await askGated(actor, passed, { ...ask(life), requestId });
    return await tell(response, { life, requestId, done, leave });
  } catch (error) {
    done();
    throw error;
  }
}
