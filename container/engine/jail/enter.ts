/**
 * Enters a jail from inside its namespaces: joins the cgroups and changes the root.
 *
 * The caller decides the order, because it must first open its listening socket in the machine's network:
 * `enterJail`, `isolateNetwork`, `dropPrivileges`.
 */
import { writeFileSync } from "node:fs";
import { jailHome, jailUser, jailWorkspace } from "./identity.ts";
import type { JailSpec } from "./jail-spec.ts";
import {
  bringUpLoopback,
  limitProcesses,
  openFolder,
  setHostName,
  unshareNetwork,
} from "./kernel.ts";
import { dropPrivileges } from "./privileges.ts";
import { buildRoot } from "./root.ts";

type Jail = {
  /** Applies to the calling thread and to everything that it starts later. */
  isolateNetwork(): void;
  dropPrivileges(): void;
  /** A folder in which the agent may make one cgroup per command. */
  cgroup: string | undefined;
  /** Commands run as this user; undefined: as the agent's own. */
  user: { uid: number; gid: number } | undefined;
  home: string;
  workspace: string;
};

export function enterJail(spec: JailSpec): Jail {
  for (const group of spec.cgroups.join) writeFileSync(`${group}/cgroup.procs`, "0");
  const cgroup = openForCommands(spec.cgroups.commands);
  setHostName(spec.hostName);
  buildRoot(spec);
  if (spec.processesMax !== null) limitProcesses(spec.processesMax);
  return {
    isolateNetwork() {
      if (spec.network === "host") return;
      unshareNetwork();
      bringUpLoopback();
    },
    dropPrivileges: () => dropPrivileges(spec.user),
    cgroup,
    user: spec.user === "own" ? { uid: jailUser.uid, gid: jailUser.gid } : undefined,
    home: jailHome,
    workspace: jailWorkspace,
  };
}

/** The folder is not part of the new root, but a descriptor that is opened now still reaches it. */
function openForCommands(path: string | null): string | undefined {
  return path === null ? undefined : `/proc/self/fd/${openFolder(path)}`;
}
