/**
 * Owns an agent's start and end in a container that the platform made.
 * Does not own the container's root or network: the image and the platform do.
 */
import { mkdirSync } from "node:fs";
import { agentPort } from "../../../src/protocol/internal/agent-wire.ts";
import { giveUpPrivileges } from "../../engine/jail/privileges.ts";
import { logsFolder } from "../exec/sandbox-env.ts";
import {
  adoptOrphans,
  hideFromOthers,
  leaveAllGroups,
  refuseNewPrivileges,
} from "../kernel/libc.ts";
import { MetadataCopy, metadataFolder } from "../metadata-copy.ts";
import { Sandbox } from "../sandbox.ts";
import { readServeBoot } from "../server/boot.ts";
import { drawIncarnation } from "../server/incarnation.ts";
import { listen } from "../server/server.ts";
import { CgroupForest } from "../supervision/cgroup.ts";
import { findCgroup } from "../supervision/find-cgroup.ts";
import type { Forest } from "../supervision/process-tree.ts";
import { Reaper } from "../supervision/reaper.ts";
import { TendedForest } from "../supervision/subreaper-client.ts";
import { sayReady } from "./ready.ts";

const commandUser = { uid: 10001, gid: 10001 };

export async function serve(): Promise<void> {
  const { boot, differences } = readServeBoot();
  adoptOrphans();
  const isRoot = process.getuid?.() === 0;
  if (isRoot) {
    leaveAllGroups();
    giveUpPrivileges("own");
  } else {
    refuseNewPrivileges();
    hideFromOthers();
  }
  const incarnation = drawIncarnation(boot.startId);
  const forest = plant(incarnation, differences.tree);
  const place = {
    user: isRoot ? (differences.user ?? commandUser) : undefined,
    home: differences.home ?? "/home/berth",
    workspace: differences.workspace ?? "/workspace",
    logs: differences.logs ?? logsFolder,
    env: boot.env,
  };
  const metadata = new MetadataCopy(differences.metadata ?? metadataFolder);
  const sandbox = new Sandbox(place, forest, metadata);
  const server = listen(
    {
      hostname: "0.0.0.0",
      port: differences.port ?? agentPort,
      secret: boot.secret,
      incarnation,
      sharesLoopback: true,
    },
    () => sandbox,
  );
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.once(signal, async () => {
      await sandbox.endAll();
      process.exit(0);
    });
  }
  sayReady(server, incarnation, forest);
}

/** A group for each command where this container may make some, else a tender for each. */
function plant(incarnation: string, wanted: Forest["kind"] | undefined): Forest {
  const own = wanted === "subreaper" ? undefined : findCgroup();
  if (own !== undefined) {
    const folder = `${own}/berth-${incarnation}`;
    try {
      mkdirSync(folder);
      return new CgroupForest(folder, new Reaper("collect"), own);
    } catch (error) {
      if (wanted === "cgroup") throw error;
    }
  } else if (wanted === "cgroup") {
    throw new Error("cgroup v2 is not mounted here");
  }
  return new TendedForest(new Reaper("end"));
}
