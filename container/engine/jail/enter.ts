/**
 * Owns the way into a room: the first process of its namespaces joins its groups and changes its root.
 * Does not own the namespaces (unshare made them) nor the network beyond loopback (the engine connects it).
 *
 * The order is the caller's, who must first open what belongs to the machine, its listening socket:
 * enterRoom, takeOwnNetwork, dropPrivileges.
 */
import { writeFileSync } from "node:fs";
import { roomHome, roomUser, roomWorkspace } from "./identity.ts";
import type { RoomPlan } from "./jail-spec.ts";
import { limitProcesses, loopbackUp, openFolder, setHostName, unshareNetwork } from "./kernel.ts";
import { giveUpPrivileges } from "./privileges.ts";
import { buildRoot } from "./root.ts";

export type Room = {
  /** Of the main thread and all that it starts from then on. */
  takeOwnNetwork(): void;
  dropPrivileges(): void;
  /** A folder in which the agent may make one cgroup for each command. */
  cgroup: string | undefined;
  /** Commands run as this user; undefined: the agent's own. */
  user: { uid: number; gid: number } | undefined;
  home: string;
  workspace: string;
};

export function enterRoom(plan: RoomPlan): Room {
  for (const group of plan.cgroups.join) writeFileSync(`${group}/cgroup.procs`, "0");
  const cgroup = keepFolder(plan.cgroups.commands);
  setHostName(plan.hostName);
  buildRoot(plan);
  if (plan.processesMax !== null) limitProcesses(plan.processesMax);
  return {
    takeOwnNetwork() {
      if (plan.network === "host") return;
      unshareNetwork();
      loopbackUp();
    },
    dropPrivileges: () => giveUpPrivileges(plan.user),
    cgroup,
    user: plan.user === "own" ? { uid: roomUser.uid, gid: roomUser.gid } : undefined,
    home: roomHome,
    workspace: roomWorkspace,
  };
}

/** The folder is not part of the new root; a descriptor opened before reaches it still. */
function keepFolder(path: string | null): string | undefined {
  return path === null ? undefined : `/proc/self/fd/${openFolder(path)}`;
}
