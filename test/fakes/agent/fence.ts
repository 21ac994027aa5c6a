/**
 * Raises the fence: nothing below it starts any more; with `drain` running work below it ends too.
 */
import type { AgentFence, AgentFenced } from "../../../src/protocol/internal/agent.ts";
import type { FakeAgent } from "./agent.ts";

export async function raiseFence(agent: FakeAgent, call: AgentFence): Promise<AgentFenced> {
  agent.fence = Math.max(agent.fence, call.fence);
  const below = () => [...agent.running.values()].filter(({ fence }) => fence < call.fence);
  if (call.drain) for (const { stop } of below()) stop.now("fenced");
  const until = Date.now() + call.waitMs;
  while (below().length > 0 && Date.now() < until && !agent.ended) {
    await new Promise<void>((resolve) => {
      const go = () => {
        clearTimeout(timer);
        agent.waiters.delete(go);
        resolve();
      };
      const timer = setTimeout(go, until - Date.now());
      agent.waiters.add(go);
    });
  }
  if (agent.ended) throw new TypeError("connection reset");
  return { fence: agent.fence, left: below().length };
}
