/** The kinds of clients, how many of each there are, and their loop until the run is over. */
import { setTimeout as pause } from "node:timers/promises";
import { creates } from "./clients/creates.ts";
import { bursts, execs } from "./clients/execs.ts";
import { files } from "./clients/files.ts";
import { idempotentExecs } from "./clients/idempotency.ts";
import { leaseSockets, leases } from "./clients/leases.ts";
import { lifecycle } from "./clients/lifecycle.ts";
import { lists } from "./clients/lists.ts";
import { metadata } from "./clients/metadata.ts";
import { plans } from "./clients/plans.ts";
import { processes } from "./clients/processes.ts";
import { restores } from "./clients/restores.ts";
import { sessions } from "./clients/sessions.ts";
import { terminals } from "./clients/terminals.ts";
import type { ClientMaker, Harness } from "./harness.ts";

type Kind = { make: ClientMaker; count: number; restMaxMs: number };

export const kinds: Record<string, Kind> = {
  execs: { make: execs, count: 2, restMaxMs: 200 },
  bursts: { make: bursts, count: 1, restMaxMs: 1_000 },
  idempotent: { make: idempotentExecs, count: 2, restMaxMs: 200 },
  processes: { make: processes, count: 1, restMaxMs: 400 },
  sessions: { make: sessions, count: 1, restMaxMs: 300 },
  terminals: { make: terminals, count: 1, restMaxMs: 400 },
  files: { make: files, count: 2, restMaxMs: 200 },
  metadata: { make: metadata, count: 3, restMaxMs: 100 },
  leases: { make: leases, count: 3, restMaxMs: 200 },
  holders: { make: leaseSockets, count: 1, restMaxMs: 300 },
  lifecycle: { make: lifecycle, count: 1, restMaxMs: 1_500 },
  restores: { make: restores, count: 1, restMaxMs: 300 },
  creates: { make: creates, count: 2, restMaxMs: 500 },
  lists: { make: lists, count: 1, restMaxMs: 1_000 },
  plans: { make: plans, count: 1, restMaxMs: 500 },
};

/** Resolves when the last client has ended its turn. */
export async function runClients(harnessOf: (name: string, n: number) => Harness): Promise<void> {
  let n = 0;
  const clients = Object.entries(kinds).flatMap(([kind, { make, count, restMaxMs }]) =>
    Array.from({ length: count }, async (_, which) => {
      n += 1;
      const harness = harnessOf(`${kind}${which + 1}`, n);
      const turn = make(harness);
      while (!harness.isOver()) {
        await turn();
        await pause(harness.random.between(5, restMaxMs));
      }
    }),
  );
  await Promise.all(clients);
}
