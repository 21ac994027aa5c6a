/**
 * Owns which clients there are, how many of each, and that each goes on turn after turn until it is over.
 */
import { setTimeout as pause } from "node:timers/promises";
import { bursts } from "./clients/bursts.ts";
import { creates } from "./clients/creates.ts";
import { execs } from "./clients/execs.ts";
import { files } from "./clients/files.ts";
import { keyed } from "./clients/idempotency.ts";
import { leaseSockets, leases } from "./clients/leases.ts";
import { lives } from "./clients/lifecycle.ts";
import { lists } from "./clients/lists.ts";
import { metadata } from "./clients/metadata.ts";
import { plans } from "./clients/plans.ts";
import { processes } from "./clients/processes.ts";
import { restores } from "./clients/restores.ts";
import { sessions } from "./clients/sessions.ts";
import { terminals } from "./clients/terminals.ts";
import type { ClientMaker, Desk } from "./harness.ts";

type Kind = { make: ClientMaker; count: number; restMaxMs: number };

export const kinds: Record<string, Kind> = {
  execs: { make: execs, count: 2, restMaxMs: 200 },
  bursts: { make: bursts, count: 1, restMaxMs: 1_000 },
  keyed: { make: keyed, count: 2, restMaxMs: 200 },
  processes: { make: processes, count: 1, restMaxMs: 400 },
  sessions: { make: sessions, count: 1, restMaxMs: 300 },
  terminals: { make: terminals, count: 1, restMaxMs: 400 },
  files: { make: files, count: 2, restMaxMs: 200 },
  metadata: { make: metadata, count: 3, restMaxMs: 100 },
  leases: { make: leases, count: 3, restMaxMs: 200 },
  holders: { make: leaseSockets, count: 1, restMaxMs: 300 },
  lives: { make: lives, count: 1, restMaxMs: 1_500 },
  restores: { make: restores, count: 1, restMaxMs: 300 },
  creates: { make: creates, count: 2, restMaxMs: 500 },
  lists: { make: lists, count: 1, restMaxMs: 1_000 },
  plans: { make: plans, count: 1, restMaxMs: 500 },
};

/** Resolves when the last of them has ended its turn. */
export async function work(deskOf: (name: string, n: number) => Desk): Promise<void> {
  let n = 0;
  const working = Object.entries(kinds).flatMap(([kind, { make, count, restMaxMs }]) =>
    Array.from({ length: count }, async (_, which) => {
      n += 1;
      const desk = deskOf(`${kind}${which + 1}`, n);
      const turn = make(desk);
      while (!desk.isOver()) {
        await turn();
        await pause(desk.random.between(5, restMaxMs));
      }
    }),
  );
  await Promise.all(working);
}
