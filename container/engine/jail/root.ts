/** Mounts the file tree that a sandbox sees: what goes where, in which order, with which flags. */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { jailUser, jailWorkspace } from "./identity.ts";
import type { JailSpec } from "./jail-spec.ts";
import { changeRoot, mount, mountFlag } from "./kernel.ts";

const { noSuid, noDev, noExec, readOnly, remount, bind } = mountFlag;

const devices = ["null", "zero", "full", "random", "urandom", "tty"];

/** All sandboxes of a machine share 3,072 terminals; without a limit one sandbox could take all of them. */
const terminalsMax = 256;

const deviceLinks = {
  fd: "/proc/self/fd",
  stdin: "/proc/self/fd/0",
  stdout: "/proc/self/fd/1",
  stderr: "/proc/self/fd/2",
  ptmx: "pts/ptmx",
};

export function buildRoot(spec: JailSpec): void {
  const root = spec.mountPoint;
  mount("overlay", root, "overlay", noSuid | noDev, overlayOptions(spec, spec.root));
  mount("overlay", `${root}/usr`, "overlay", noSuid | noDev, overlayOptions(spec, spec.usr));
  for (const folder of spec.readOnlyFolders) bindReadOnly(folder, `${root}${folder}`);
  // The flags of a bind mount only take effect with a remount.
  mount(spec.workspace, `${root}${jailWorkspace}`, null, bind);
  mount("none", `${root}${jailWorkspace}`, null, remount | bind | noSuid | noDev);
  const { tmp, run } = spec.tmpfsBytes;
  mount("tmpfs", `${root}/tmp`, "tmpfs", noSuid | noDev, `mode=1777,size=${tmp}`);
  mount("tmpfs", `${root}/run`, "tmpfs", noSuid | noDev, `mode=755,size=${run}`);
  mkdirSync(`${root}/run/lock`);
  mount("proc", `${root}/proc`, "proc", noSuid | noDev | noExec);
  buildDevices(`${root}/dev`, spec.tmpfsBytes.shm);
  changeRoot(root);
}

/**
 * Turns off every feature that relies on an unchanged lower folder: the host's /usr changes with its upgrades.
 * Without root, overlay must store its marks in `user.` attributes; that mode excludes redirects and rejects the
 * option `redirect_dir`.
 */
function overlayOptions(spec: JailSpec, layers: JailSpec["root"]): string {
  const { lower, upper, work } = layers;
  const folders = `lowerdir=${escapePath(lower)},upperdir=${escapePath(upper)},workdir=${escapePath(work)}`;
  const stable = `${folders},index=off,metacopy=off,xino=off`;
  return spec.user === "mapped" ? `${stable},userxattr` : `${stable},redirect_dir=off`;
}

function escapePath(path: string): string {
  return path.replace(/[\\,:]/g, (character) => `\\${character}`);
}

function bindReadOnly(from: string, to: string): void {
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
  const { uid, gid } = jailUser;
  const owner = `uid=${uid},gid=${gid},mode=620,ptmxmode=666`;
  const bounds = `max=${terminalsMax}`;
  mount("devpts", `${dev}/pts`, "devpts", noSuid | noExec, `newinstance,${bounds},${owner}`);
  mkdirSync(`${dev}/shm`);
  mount("tmpfs", `${dev}/shm`, "tmpfs", noSuid | noDev, `mode=1777,size=${shmBytes}`);
}
