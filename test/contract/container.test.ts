/** Runs the contract of the runtime over the embedded engine with its real agent, and over the container in memory. */
import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { childrenOf } from "../../container/engine/processes.ts";
import {
  firstOf,
  identities,
  newData,
  startEngine,
  stopWithoutTraces,
} from "../engine/test-engine.ts";
import { FakeContainer, fakeRuntime } from "../fakes/container.ts";
import { containerContract } from "./container.ts";

for (const as of identities()) {
  containerContract(`the embedded engine that is ${as}`, async () => {
    const data = newData(as);
    const engine = await startEngine(as, { data });
    return {
      container: engine.container,
      async crash(id) {
        const { outer } = JSON.parse(readFileSync(`${data}/live/${id}`, "utf8"));
        process.kill(firstOf(childrenOf(outer.pid)), "SIGKILL");
      },
      async close() {
        await stopWithoutTraces(engine);
      },
    };
  });
}

containerContract("memory", async () => {
  const machines = new Map<string, FakeContainer>();
  const machineOf = (id: string) => {
    const known = machines.get(id) ?? new FakeContainer();
    machines.set(id, known);
    return known;
  };
  return {
    container: (id) => fakeRuntime(machineOf(id)),
    async crash(id) {
      machineOf(id).exitWith({ exitCode: null, signal: "SIGKILL", reason: "exited" });
    },
    async close() {
      for (const machine of machines.values()) {
        machine.exitWith({ exitCode: null, signal: "SIGKILL", reason: "destroyed" });
        expect(machine.onExit.size).toBe(0);
      }
    },
  };
});
