/**
 * Owns the words that say what separates a sandbox from its machine and from its neighbours.
 * Does not own how: the engine and the platform do, and say truthfully what holds.
 */
import { z } from "zod";

export const isolationSchema = z
  .strictObject({
    engine: z.enum(["embedded", "platform"]),
    user: z.enum(["own", "mapped", "vm"]).meta({
      description:
        "own: an unprivileged user of its own. mapped: Berth's user, without privileges. vm: a machine of its own.",
    }),
    files: z.enum(["overlay", "vm"]).meta({
      description: "overlay: a private view of /usr and a written root; nothing else of the host.",
    }),
    processes: z.enum(["namespace", "vm"]),
    network: z.enum(["none", "nat", "pasta", "host", "vm"]).meta({
      description:
        "none: loopback only. nat, pasta: a way out. host: the machine's own, with all its loopback services.",
    }),
    tree: z.enum(["cgroup", "subreaper"]).meta({
      description: "What holds the processes of one command together, so that all of them end.",
    }),
    memoryLimit: z.boolean(),
    processLimit: z.boolean(),
    diskLimit: z.boolean(),
  })
  .meta({ id: "Isolation" });

export type Isolation = z.infer<typeof isolationSchema>;
