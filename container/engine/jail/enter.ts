/**
 * Enters a jail from inside its namespaces: joins the cgroups and changes the root.
 *
 * The caller decides the order, because it must first open its listening socket in the machine's network:
 * `enterJail`, `isolateNetwork`, `dropPrivileges`.
 */
import { writeFileSync } from "node:fs";
import { jailHome, jailUser, jailWorkspace } from "./identity.ts";
import type { JailSpec } from "./jail-spec.ts";
import { bringUpLoopback, limitUser, openFolder, setHostName, unshareNetwork } from "./kernel.ts";
import { dropPrivileges } from "./privileges.ts";
import { buildRoot } from "./root.ts";

export function enterJail(spec: JailSpec) {
  for (const group of spec.cgroups.join) writeFileSync(`${group}/cgroup.procs`, "0");
  const { commands } = spec.cgroups;
  // The folder is not part of the new root, but a descriptor that is opened now still reaches it.
  const cgroup = commands === null ? undefined : `/proc/self/fd/${openFolder(commands)}`;
  setHostName(spec.hostName);
  buildRoot(spec);
  limitUser(spec.userLimits);
  return {
    /** Applies to the calling thread and to everything that it starts later. */
    isolateNetwork() {
      if (spec.network === "host") return;
      unshareNetwork();
      bringUpLoopback();
    },
    dropPrivileges: () => dropPrivileges(spec.user),
    /** A folder in which the agent may make one cgroup per command. */
    cgroup,
    /** Commands run as this user; undefined: as the agent's own. */
    user: spec.user === "own" ? { uid: jailUser.uid, gid: jailUser.gid } : undefined,
    home: jailHome,
    workspace: jailWorkspace,
  };
}
