import { describe, expect, it } from "vitest";
import type { ConnectedCalls } from "../berth-calls.ts";
import { Random } from "../sim/random.ts";
import { bursts, execs } from "./clients/execs.ts";
import { idempotentExecs } from "./clients/idempotency.ts";
import { leases } from "./clients/leases.ts";
import { sessions } from "./clients/sessions.ts";
import { type ClientMaker, Harness } from "./harness.ts";
import { History } from "./history.ts";

const turns = 5;

/** Returns the commands that a client sends to a server that acknowledges everything. */
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
  const berth = { with: () => ({ sandbox: () => sandbox }) } as unknown as ConnectedCalls;
  const harness = new Harness({
    ...{
      name: "one",
      berth,
      sdk: undefined as never,
      history: new History(),
      random: new Random(1),
      sandboxIds: ["sandbox-a"],
    },
    isOver: () => false,
  });
  const turn = make(harness);
  for (let n = 0; n < turns; n += 1) await turn();
  return commands.filter((command) => command.includes("/workspace/ran"));
}

describe("the clients of a chaos run", () => {
  it.each<[string, ClientMaker]>([
    ["without a key", execs],
    ["in a burst", bursts],
    ["with a key", idempotentExecs],
    ["in a session", sessions],
    ["under a lease", leases],
  ])(
    "[CA7] record start and end of each command %s, so that overlapping holders are detected",
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
