/**
 * The list of rows in the order in which they are measured. Each row has its own file.
 */
import type { Bench, Figure } from "./figure.ts";
import { burst } from "./rows/burst.ts";
import { checkpoint } from "./rows/checkpoint.ts";
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
import { sessions } from "./rows/sessions.ts";
import { streams } from "./rows/streams.ts";
import { sync } from "./rows/sync.ts";
import { terminals } from "./rows/terminals.ts";

export const rowNames = [
  "exec",
  "create",
  "density",
  "streams",
  "burst",
  "invented",
  "lease",
  "metadata",
  "directory",
  "directory-load",
  "output",
  "sessions",
  "terminals",
  "checkpoint",
  "plan",
  "port",
  "files",
  "sync",
  "growth",
  "cost",
  "peers",
] as const;

/** Rows that need other programs and run only if named. */
export const onlyIfNamed: readonly RowName[] = ["peers"];

export type RowName = (typeof rowNames)[number];

export const rows: Record<RowName, (bench: Bench) => Promise<Figure[]>> = {
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
  growth,
  cost,
  peers,
};
