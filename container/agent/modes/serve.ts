/** Runs an agent in a container that the platform made, whose root and network are ready. */
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { agentPort } from "../../../src/protocol/internal/agent-wire.ts";
import { CgroupMeters } from "../../engine/jail/meters.ts";
import { dropPrivileges } from "../../engine/jail/privileges.ts";
import { defaultUser, logsFolder } from "../exec/sandbox-env.ts";
import {
  becomeSubreaper,
  dropSupplementaryGroups,
  hideFromOthers,
  setNoNewPrivileges,
} from "../kernel/libc.ts";
import { MetadataCopy, metadataFolder } from "../metadata-copy.ts";
import { Sandbox } from "../sandbox.ts";
import { listen } from "../server/server.ts";
import { CgroupSupervisor } from "../supervision/cgroup.ts";
import type { ProcessSupervisor } from "../supervision/process-tree.ts";
import { Reaper } from "../supervision/reaper.ts";
import { SubreaperSupervisor } from "../supervision/subreaper-client.ts";
import { generateIncarnation, readServeBoot, reportReady } from "./boot.ts";
import { endOnSignal } from "./host-notice.ts";

const commandUser = { uid: 10001, gid: 10001 };

export async function serve(): Promise<void> {
  const { boot, differences } = readServeBoot();
  becomeSubreaper();
  const isRoot = process.getuid?.() === 0;
  if (isRoot) {
    dropSupplementaryGroups();
    dropPrivileges("own");
  } else {
    setNoNewPrivileges();
    hideFromOthers();
  }
  const incarnation = generateIncarnation(boot.startId);
  const ownCgroup = findCgroup();
  const supervisor = createSupervisor(incarnation, ownCgroup, differences.tree);
  const user = isRoot ? (differences.user ?? commandUser) : undefined;
  const sandboxEnv = {
    ...{ user, lookup: user, groups: [], name: defaultUser, ids: undefined },
    home: differences.home ?? "/home/berth",
    workspace: differences.workspace ?? "/workspace",
    logs: differences.logs ?? logsFolder,
    env: boot.env ?? {},
  };
  const metadataCopy = new MetadataCopy(differences.metadata ?? metadataFolder);
  const meters = { cgroup: new CgroupMeters([ownCgroup ?? ""]), hasOwnNetwork: true };
  const sandbox = new Sandbox({ sandboxEnv, supervisor, metadataCopy, meters });
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
  endOnSignal({ callbackUrl: boot.callbackUrl, secret: boot.secret, incarnation }, async () => {
    await sandbox.endAll();
    process.exit(0);
  });
  reportReady(server, incarnation, supervisor);
}

/** Uses a cgroup for each command where this container may create some, otherwise a subreaper for each. */
function createSupervisor(
  incarnation: string,
  ownCgroup: string | undefined,
  required: ProcessSupervisor["kind"] | undefined,
): ProcessSupervisor {
  if (ownCgroup !== undefined && required !== "subreaper") {
    const folder = `${ownCgroup}/berth-${incarnation}`;
    try {
      mkdirSync(folder);
      return new CgroupSupervisor(folder, { reaper: new Reaper("reap") }, ownCgroup);
    } catch (error) {
      if (required === "cgroup") throw error;
    }
  } else if (required === "cgroup") {
    throw new Error("cgroup v2 is not mounted here");
  }
  return new SubreaperSupervisor({ reaper: new Reaper("kill") });
}

/** The container's own cgroup v2 folder; undefined: cgroup v2 is not mounted. Writing shows whether it is writable. */
function findCgroup(): string | undefined {
  const own = /^0::(.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1];
  const mounts = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
  const mount = mounts.find((line) => line.includes(" - cgroup2 "))?.split(" ");
  const [root, mountPoint] = [mount?.[3], mount?.[4]];
  if (own === undefined || root === undefined || mountPoint === undefined) return undefined;
  const below = own.startsWith(root) ? own.slice(root === "/" ? 0 : root.length) : own;
  return join(mountPoint, below);
}
