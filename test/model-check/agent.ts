/**
 * Owns the agent of the model: the fence that it has seen, what runs, which drain it has been asked for.
 * Does not own a process: work runs until somebody says that it has finished.
 */

/** A gated call. `grant` is the fence of the lease that it belongs to, 0 without one. */
export type Call = { fence: number; grant: number };

export type Agent = { fence: number; running: readonly Call[]; drain: number };

export const freshAgent: Agent = { fence: 0, running: [], drain: 0 };

/** Undefined: refused, for its fence is below one that the agent has seen. */
export function start(agent: Agent, call: Call): Agent | undefined {
  if (call.fence < agent.fence) return undefined;
  return { ...agent, fence: call.fence, running: [...agent.running, call] };
}

/** The first word of an instance: nothing below may begin any more; what runs is the answer. */
export function raise(agent: Agent, fence: number): Agent {
  return { ...agent, fence: Math.max(agent.fence, fence) };
}

export function askToDrain(agent: Agent, fence: number): Agent {
  return { ...raise(agent, fence), drain: Math.max(agent.drain, fence) };
}

/** Nothing that began below the fence of the drain is left. */
export function hasDrained(agent: Agent): boolean {
  return agent.running.every(({ fence }) => fence >= agent.drain);
}
