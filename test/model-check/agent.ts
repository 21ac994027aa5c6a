/**
 * The agent of the model: the fence that it has seen, what runs, and which drain was requested. Work runs until a move ends
 * it.
 */

/** A gated call. `grant` is the fence of the lease that it belongs to, 0 without one. */
export type Call = { fence: number; grant: number };

export type Agent = { fence: number; running: readonly Call[]; drain: number };

export const freshAgent: Agent = { fence: 0, running: [], drain: 0 };

/** Undefined if the call is refused because its fence is below the highest. */
export function start(agent: Agent, call: Call): Agent | undefined {
  if (call.fence < agent.fence) return undefined;
  return { ...agent, fence: call.fence, running: [...agent.running, call] };
}

/** The first request of an instance: nothing below its fence may start any more; the response says what runs. */
export function raise(agent: Agent, fence: number): Agent {
  return { ...agent, fence: Math.max(agent.fence, fence) };
}

export function askToDrain(agent: Agent, fence: number): Agent {
  return { ...raise(agent, fence), drain: Math.max(agent.drain, fence) };
}

/** No work from below the fence of the drain is left. */
export function hasDrained(agent: Agent): boolean {
  return agent.running.every(({ fence }) => fence >= agent.drain);
}
