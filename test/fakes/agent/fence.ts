/**
 * Owns the answer to a fence call: from then on nothing below begins; with `drain` it also ends.
 */
import type { AgentFence, AgentFenced } from "../../../src/protocol/internal/agent.ts";
import type { FakeAgent } from "./agent.ts";

export async function raise(agent: FakeAgent, call: AgentFence): Promise<AgentFenced> {
  agent.fence = Math.max(agent.fence, call.fence);
  const below = () => [...agent.running.values()].filter(({ fence }) => fence < call.fence);
  if (call.drain) for (const { stop } of below()) stop.now("fenced");
  const until = Date.now() + call.waitMs;
  while (below().length > 0 && Date.now() < until && !agent.ended) {
    await new Promise<void>((resolve) => {
      const go = () => {
        clearTimeout(timer);
        agent.watchers.delete(go);
        resolve();
      };
      const timer = setTimeout(go, until - Date.now());
      agent.watchers.add(go);
    });
  }
  if (agent.ended) throw new TypeError("connection reset");
  return { fence: agent.fence, left: below().length };
}
