import { describe, expect, it } from "vitest";
import type { Berth } from "../../src/client/index.ts";
import { Random } from "../sim/random.ts";
import { bursts } from "./clients/bursts.ts";
import { execs } from "./clients/execs.ts";
import { keyed } from "./clients/idempotency.ts";
import { leases } from "./clients/leases.ts";
import { sessions } from "./clients/sessions.ts";
import { type ClientMaker, Desk } from "./harness.ts";
import { History } from "./history.ts";

const turns = 5;

/** A server that acknowledges everything; the commands that it was given. */
async function commandsOf(make: ClientMaker): Promise<string[]> {
  const commands: string[] = [];
  const run = async ({ command }: { command: string }) => {
    commands.push(command);
    return { exitCode: 0, stdout: "", execId: "e" };
  };
  const sandbox = {
    exec: run,
    createSession: async () => ({ incarnation: "i" }),
    execInSession: (_: string, call: { command: string }) => run(call),
    endSession: async () => {},
    acquireLease: async () => ({ token: "t", fence: 1 }),
    releaseLease: async () => {},
    breakLease: async () => {},
  };
  const berth = { with: () => ({ sandbox: () => sandbox }) } as unknown as Berth;
  const desk = new Desk({
    ...{ name: "one", berth, history: new History(), random: new Random(1), boxes: ["a-box"] },
    isOver: () => false,
  });
  const turn = make(desk);
  for (let n = 0; n < turns; n += 1) await turn();
  return commands.filter((command) => command.includes("/workspace/ran"));
}

describe("the clients of the chaos", () => {
  it.each<[string, ClientMaker]>([
    ["without a key", execs],
    ["in a burst", bursts],
    ["with a key", keyed],
    ["in a session", sessions],
    ["under a lease", leases],
  ])(
    "[CA7] let each command %s say when it begins and ends, so that holders who meet are seen",
    async (_, make) => {
      const commands = await commandsOf(make);
      expect(commands.length).toBeGreaterThanOrEqual(turns);
      for (const command of commands) {
        expect(command).toMatch(/'(U \S+ b|L 1 b \S+)' >> \/workspace\/holds/);
        expect(command).toMatch(/'(U \S+ e|L 1 e \S+)' >> \/workspace\/holds/);
      }
    },
  );
});
