/** The schemas of `GET /health`, and of what isolates a sandbox from its machine and from other sandboxes. */
import { z } from "zod";
import { component } from "./fields/component.ts";

export const isolationSchema = component("Isolation", {
  engine: z.enum(["embedded", "platform"]),
  user: z
    .enum(["ranged", "own", "mapped", "vm"])
    .describe(
      "ranged: a user namespace with ids of its own, and root inside. own: a separate user. mapped: Berth's user without privileges. vm: a separate machine.",
    ),
  files: z
    .enum(["overlay", "vm"])
    .describe("overlay: a private view of /usr and a writable root; nothing else of the host."),
  processes: z.enum(["namespace", "vm"]),
  network: z
    .enum(["none", "nat", "pasta", "host", "vm"])
    .describe("none: loopback only. nat, pasta: outgoing connections. host: that of the machine."),
  tree: z
    .enum(["cgroup", "subreaper"])
    .describe("How the processes of one command are tracked, so that all of them end."),
  memoryLimit: z.boolean(),
  processLimit: z.boolean(),
  diskLimit: z.boolean(),
});

export const healthSchema = component("Health", {
  status: z
    .enum(["ok", "degraded", "disk_full"])
    .describe(
      "disk_full, with status 503: nothing is created, started or saved; what frees room works.",
    ),
  version: z.string(),
  engine: z.enum(["embedded", "platform"]),
  isolation: isolationSchema.optional(),
  disk: z
    .strictObject({ freeBytes: z.int(), floorBytes: z.int() })
    .optional()
    .describe("The disk of one machine: below the floor it counts as full."),
  missing: z
    .array(z.string())
    .describe("One sentence for each isolation feature that this machine lacks, with the remedy."),
});

export type Health = z.infer<typeof healthSchema>;
export type Isolation = z.infer<typeof isolationSchema>;
