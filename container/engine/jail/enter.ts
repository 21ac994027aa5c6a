/**
 * Enters a jail from inside its namespaces: joins the cgroups and changes the root.
 *
 * The caller decides the order, because it must first open its listening socket in the machine's network:
 * `enterJail`, `isolateNetwork`, `openNamespaces`, `dropPrivileges`.
 */
import { openSync, writeFileSync } from "node:fs";
import { type IdRange, outside } from "./id-range.ts";
import { jailHome, jailUser, jailWorkspace } from "./identity.ts";
import type { JailSpec } from "./jail-spec.ts";
import {
  bringUpLoopback,
  limitUser,
  openFolder,
  openNetworkToAll,
  setHostName,
  unshareNetwork,
} from "./kernel.ts";
import { MappedFolders } from "./layers.ts";
import { CgroupMeters } from "./meters.ts";
import { dropPrivileges } from "./privileges.ts";
import { buildRoot, protectMachine } from "./root.ts";
import { makeUserNamespace } from "./user-namespace.ts";

/** What a process needs to enter the namespaces of commands: descriptors, and who may become root there. */
export type CommandNamespaces = IdRange & {
  user: number;
  mounts: number;
  /** The program of call-list.ts. */
  program: number;
  sudo: boolean;
};

export function enterJail(spec: JailSpec) {
  for (const group of spec.cgroups.join) writeFileSync(`${group}/cgroup.procs`, "0");
  const { commands } = spec.cgroups;
  // The folder is not part of the new root, but a descriptor that is opened now still reaches it.
  const cgroup = commands === null ? undefined : `/proc/self/fd/${openFolder(commands)}`;
  const meters = new CgroupMeters(ownGroups(spec.cgroups));
  setHostName(spec.hostName);
  limitUser(spec.userLimits);
  const entered = enterRoot(spec);
  const { kind } = spec.user;
  const ids = entered?.range;
  const user = { uid: outside(ids, jailUser.uid), gid: outside(ids, jailUser.gid) };
  return {
    /** Applies to the calling thread and to everything that it starts later. */
    isolateNetwork() {
      if (spec.network === "host") return;
      unshareNetwork();
      bringUpLoopback();
      // Root inside has no rights over the network: every user may do what only root may elsewhere.
      if (kind === "ranged") openNetworkToAll();
    },
    /** Commands run in these; undefined: in the agent's own. They have the mounts of this moment. */
    openNamespaces(): CommandNamespaces | undefined {
      if (entered === undefined) return undefined;
      protectMachine();
      const { range, program, namespace } = entered;
      return { ...range, program, user: namespace.user, mounts: namespace.copyMounts() };
    },
    /** Resolves when no other process of the jail is left. */
    alone: entered?.namespace.over ?? Promise.resolve(),
    dropPrivileges: () => dropPrivileges(kind),
    /** A folder in which the agent may make one cgroup per command. */
    cgroup,
    meters,
    /** Commands run as this user of the machine; undefined: as the agent's own. */
    user: kind === "mapped" ? undefined : user,
    ids,
    home: jailHome,
    workspace: jailWorkspace,
  };
}

/** The agent joins a leaf of the group that counts the whole sandbox. */
function ownGroups({ join, commands }: JailSpec["cgroups"]): string[] {
  return commands === null ? join : [commands, ...join];
}

function enterRoot(spec: JailSpec) {
  if (spec.user.kind !== "ranged") {
    buildRoot(spec);
    return undefined;
  }
  const { first, sudo, callList } = spec.user;
  const program = openSync(callList, "r");
  const namespace = makeUserNamespace(spec.user, program);
  buildRoot(spec, new MappedFolders(spec.mountPoint, namespace.user, spec.user));
  return { range: { first, sudo }, program, namespace };
}
