/**
 * What limits the figures of each row, in a few words; printed with a missed target. See docs/design/performance.md
 * for details.
 */
import type { RowName } from "./rows.ts";

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
  cost: "what woke an idle object: see its line in the server's log",
};
