/**
 * Owns the file tree that a sandbox sees: what is mounted where, in which order, with which flags.
 * Does not own the folders on disk (engine/tree.ts) nor what the skeleton holds (engine/skeleton.ts).
 */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { roomUser, roomWorkspace } from "./identity.ts";
import type { RoomPlan } from "./jail-spec.ts";
import { changeRoot, mount, mountFlag } from "./kernel.ts";

const { noSuid, noDev, noExec, readOnly, remount, bind } = mountFlag;

const devices = ["null", "zero", "full", "random", "urandom", "tty"];

/** All sandboxes of the machine share 3,072: one that took them would leave no neighbour a terminal. */
const terminalsMax = 256;

const deviceLinks = {
  fd: "/proc/self/fd",
  stdin: "/proc/self/fd/0",
  stdout: "/proc/self/fd/1",
  stderr: "/proc/self/fd/2",
  ptmx: "pts/ptmx",
};

export function buildRoot(plan: RoomPlan): void {
  const at = plan.mountAt;
  mount("overlay", at, "overlay", noSuid | noDev, overlayOptions(plan, plan.root));
  mount("overlay", `${at}/usr`, "overlay", noSuid | noDev, overlayOptions(plan, plan.usr));
  for (const folder of plan.readOnlyFolders) showReadOnly(folder, `${at}${folder}`);
  // The flags of a bind mount are only taken by a remount.
  mount(plan.workspace, `${at}${roomWorkspace}`, null, bind);
  mount("none", `${at}${roomWorkspace}`, null, remount | bind | noSuid | noDev);
  const { tmp, run } = plan.tmpfsBytes;
  mount("tmpfs", `${at}/tmp`, "tmpfs", noSuid | noDev, `mode=1777,size=${tmp}`);
  mount("tmpfs", `${at}/run`, "tmpfs", noSuid | noDev, `mode=755,size=${run}`);
  mkdirSync(`${at}/run/lock`);
  mount("proc", `${at}/proc`, "proc", noSuid | noDev | noExec);
  buildDevices(`${at}/dev`, plan.tmpfsBytes.shm);
  changeRoot(at);
}

/**
 * What depends on the lower folder staying as it was is off: the host's /usr changes with its upgrades.
 * A user who is not root of the machine may only keep overlay's marks in `user.` attributes, which rules
 * redirects out by itself and refuses the word.
 */
function overlayOptions(plan: RoomPlan, layers: RoomPlan["root"]): string {
  const { lower, upper, work } = layers;
  const folders = `lowerdir=${escaped(lower)},upperdir=${escaped(upper)},workdir=${escaped(work)}`;
  const steady = `${folders},index=off,metacopy=off,xino=off`;
  return plan.user === "mapped" ? `${steady},userxattr` : `${steady},redirect_dir=off`;
}

function escaped(path: string): string {
  return path.replace(/[\\,:]/g, (character) => `\\${character}`);
}

function showReadOnly(from: string, to: string): void {
  mount(from, to, null, bind);
  mount("none", to, null, remount | bind | readOnly | noSuid | noDev);
}

function buildDevices(dev: string, shmBytes: number): void {
  mount("tmpfs", dev, "tmpfs", noSuid | noDev | noExec, "mode=755,size=65536");
  for (const name of devices) {
    writeFileSync(`${dev}/${name}`, "");
    mount(`/dev/${name}`, `${dev}/${name}`, null, bind);
  }
  for (const [name, target] of Object.entries(deviceLinks)) symlinkSync(target, `${dev}/${name}`);
  mkdirSync(`${dev}/pts`);
  const { uid, gid } = roomUser;
  const owner = `uid=${uid},gid=${gid},mode=620,ptmxmode=666`;
  const bounds = `max=${terminalsMax}`;
  mount("devpts", `${dev}/pts`, "devpts", noSuid | noExec, `newinstance,${bounds},${owner}`);
  mkdirSync(`${dev}/shm`);
  mount("tmpfs", `${dev}/shm`, "tmpfs", noSuid | noDev, `mode=1777,size=${shmBytes}`);
}
