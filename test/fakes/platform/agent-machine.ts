/** A platform whose containers run the fake agent, behind the same faults and counters as a fake container. */
import { FakeAgent } from "../agent/agent.ts";
import { FakeTree } from "../agent/tree.ts";
import { type FakeContainer, receive } from "../container.ts";
import { type PlatformClock, PlatformMachine, type Program } from "./machine.ts";

const realClock: PlatformClock = {
  after(ms, _what, ring) {
    const timer = setTimeout(ring, ms);
    return () => clearTimeout(timer);
  },
};

export function agentMachine(container: FakeContainer): PlatformMachine<FakeTree> {
  return new PlatformMachine<FakeTree>({
    clock: realClock,
    newTree: () => new FakeTree(),
    copyTree: (tree) => tree.copy(),
    mixTrees: mixFiles,
    boot: ({ env, tree, sendOut, exit }): Program => {
      const boot = JSON.parse(env.BERTH_BOOT ?? "{}");
      const agent = new FakeAgent({ env: {}, ...boot, tree });
      agent.protocol = container.protocol;
      agent.callbackUrl = boot.callbackUrl;
      agent.sendOut = sendOut;
      agent.exit = () => exit(0);
      container.agent = agent;
      container.tree = tree;
      container.calls.push(`start ${agent.startId}`);
      const isCurrent = () => container.agent === agent;
      return {
        fetch: (request) =>
          isCurrent() ? receive(container, request) : Promise.reject(new TypeError("refused")),
        terminate: () => void agent.terminate(),
        end: () => {
          if (isCurrent())
            container.exitWith({ exitCode: null, signal: "SIGKILL", reason: "unknown" });
        },
      };
    },
  });
}

/** Half of the paths as they were before, the others as they are after. */
function mixFiles(before: FakeTree, after: FakeTree): FakeTree {
  const mixed = after.copy();
  const paths = [...new Set([...before.files.keys(), ...after.files.keys()])].sort();
  for (const path of paths.slice(0, Math.ceil(paths.length / 2))) {
    const file = before.files.get(path);
    if (file === undefined) mixed.files.delete(path);
    else mixed.files.set(path, file);
  }
  return mixed;
}
