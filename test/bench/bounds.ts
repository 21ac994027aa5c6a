/**
 * Owns what bounds the figures of each row, in a few words, told beside a target that was missed.
 * Does not own the long form: docs/performance.md.
 */
import type { RowName } from "./rows.ts";

export const bounds: Partial<Record<RowName, string>> = {
  exec: "two more wake-ups of a thread each way, key and body, the object's own turn; in parallel by the cores",
  create: "the agent's start: mounts, cgroups, the program itself, two calls of ip for its network",
  density: "the agent's process, 4.7 MiB of its own, and the kernel's tables for each sandbox",
  streams: "the cores: each command is a fork, an exec and a cgroup",
  burst: "the cores: all of them start at once",
  invented: "the door, which must refuse an id without asking any object",
  lease: "the object's one thread and one commit for each grant and each release",
  metadata:
    "the object's one thread, one commit for each change, and the Directory that is told of it",
  directory: "the Directory's indexes: a page that is not found by one is a walk over all rows",
  output:
    "the cores, which writer, agent, workerd and reader share; the log goes by way of the disk",
  sessions: "the shell, which reads a command and tells its end over channels of its own",
  terminals: "two more wake-ups of a thread: workerd stands between",
  sync: "git: a dozen processes of it here and as many in the sandbox, each a fork and an exec",
  cost: "whatever woke an object that nobody asked: its line in the server's log says why",
};
