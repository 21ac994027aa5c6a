/** The rows in the order in which they are measured, and what limits them. */
import type { Bench, Figure } from "./figure.ts";
import { burst, streams } from "./rows/at-once.ts";
import { checkpoint } from "./rows/checkpoint.ts";
import { command } from "./rows/command.ts";
import { cost } from "./rows/cost.ts";
import { create } from "./rows/create.ts";
import { density } from "./rows/density.ts";
import { directory } from "./rows/directory.ts";
import { directoryLoad } from "./rows/directory-load.ts";
import { exec } from "./rows/exec.ts";
import { files } from "./rows/files.ts";
import { growth } from "./rows/growth.ts";
import { invented } from "./rows/invented.ts";
import { lease } from "./rows/lease.ts";
import { metadata } from "./rows/metadata.ts";
import { output } from "./rows/output.ts";
import { peers } from "./rows/peers.ts";
import { plan } from "./rows/plan.ts";
import { port } from "./rows/port.ts";
import { push } from "./rows/push.ts";
import { sessions } from "./rows/sessions.ts";
import { sync } from "./rows/sync.ts";
import { terminals } from "./rows/terminals.ts";

export const rows = {
  exec,
  create,
  density,
  streams,
  burst,
  invented,
  lease,
  metadata,
  directory,
  "directory-load": directoryLoad,
  output,
  sessions,
  terminals,
  checkpoint,
  plan,
  port,
  files,
  sync,
  command,
  push,
  growth,
  cost,
  peers,
} satisfies Record<string, (bench: Bench) => Promise<Figure[]>>;

export type RowName = keyof typeof rows;

export const rowNames = Object.keys(rows) as RowName[];

/** Rows that need other programs and run only if named. */
export const onlyIfNamed: readonly RowName[] = ["peers"];

/** What limits the figures of each row; printed with a missed target. See docs/design/performance.md for details. */
export const bounds: Partial<Record<RowName, string>> = {
  exec: "two more thread wake-ups each way, key and body checks, the object's event loop; in parallel the cores",
  create: "the agent's start: mounts, cgroups, its program, two runs of ip for its network",
  density: "the agent's process, 4.7 MiB of its own, and the kernel's tables for each sandbox",
  streams: "the cores: each command is a fork, an exec and a cgroup",
  burst: "the cores: all of them start at once",
  invented: "the Worker, which must refuse an id without calling an object",
  lease: "the object's only thread, and one commit per grant and per release",
  metadata: "the object's only thread, one commit per change, and one report to the Directory",
  directory: "the Directory's indexes: without one a page needs a scan of all rows",
  output:
    "the cores, which writer, agent, workerd and reader share; the log passes through the disk",
  sessions: "the shell, which reads a command and reports its end over separate pipes",
  terminals: "two more thread wake-ups: workerd relays between viewer and agent",
  sync: "git: a dozen processes here and as many in the sandbox, each a fork and an exec",
  command:
    "Node's own start, and processes one after the other: git eleven times here and four times in the sandbox",
  push: "hashing: each byte is hashed four times, twice on each side",
  cost: "what woke an idle object: see its line in the server's log",
};
