/** Mounts the file tree that a sandbox sees: what goes where, in which order, with which flags. */
import { chownSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { outside } from "./id-range.ts";
import { agentFolder, jailUser, jailWorkspace, packagesFolder } from "./identity.ts";
import type { JailSpec } from "./jail-spec.ts";
import { changeRoot, mount, mountFlag } from "./kernel.ts";
import type { MappedFolders } from "./layers.ts";

const { noSuid, noDev, noExec, readOnly, remount, bind } = mountFlag;

const devices = ["null", "zero", "full", "random", "urandom", "tty"];

/** All sandboxes of a machine share 3,072 terminals; without a limit one sandbox could take all of them. */
const terminalsMax = 256;

/** Below /proc: they change the machine, and are the machine root's. */
const machineSettings = ["sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi"];

const deviceLinks = {
  fd: "/proc/self/fd",
  stdin: "/proc/self/fd/0",
  stdout: "/proc/self/fd/1",
  stderr: "/proc/self/fd/2",
  ptmx: "pts/ptmx",
};

/** `mapped`: shows folders with the ids of the sandbox, if it has a range. */
export function buildRoot(given: JailSpec, mapped?: MappedFolders): void {
  const spec = mapped === undefined ? given : mapFolders(given, mapped);
  const root = mapped?.empty() ?? spec.mountPoint;
  // Without a range everything that runs has given up gaining privileges, and files of root are root's of the machine.
  const suid = mapped === undefined ? noSuid : 0n;
  const mountOverlay = (target: string, options: string) => {
    if (mapped === undefined) mount("overlay", target, "overlay", noSuid | noDev, options);
    else mapped.mountOverlay(target, noDev, options);
  };
  mountOverlay(root, overlayOptions(spec, spec.root));
  mountOverlay(`${root}/usr`, overlayOptions(spec, spec.usr));
  if (spec.packages !== null) {
    mountOverlay(`${root}${packagesFolder}`, overlayOptions(spec, spec.packages));
  }
  spec.readOnlyFolders.forEach((folder, index) => {
    bindReadOnly(folder, `${root}${given.readOnlyFolders[index]}`, suid);
  });
  // The flags of a bind mount only take effect with a remount.
  mount(spec.workspace, `${root}${jailWorkspace}`, null, bind);
  mount("none", `${root}${jailWorkspace}`, null, remount | bind | noSuid | noDev);
  const { tmp, run } = spec.tmpfsBytes;
  const range = spec.user.kind === "ranged" ? spec.user : undefined;
  const owned = range === undefined ? "" : `uid=${range.first},gid=${range.first},`;
  mount("tmpfs", `${root}/tmp`, "tmpfs", noSuid | noDev, `${owned}mode=1777,size=${tmp}`);
  mount("tmpfs", `${root}/run`, "tmpfs", noSuid | noDev, `${owned}mode=755,size=${run}`);
  mkdirSync(`${root}/run/lock`);
  if (range !== undefined) chownSync(`${root}/run/lock`, range.first, range.first);
  mount("proc", `${root}/proc`, "proc", noSuid | noDev | noExec);
  // Root inside may rename whatever is not a mount point: the agent writes as root of the machine only to this mount.
  if (range !== undefined) {
    mkdirSync(`${root}${agentFolder}`);
    const target = `${root}${agentFolder}`;
    mount("tmpfs", target, "tmpfs", noSuid | noDev | noExec, `mode=755,size=${run}`);
  }
  const [uid, gid] = [outside(range, jailUser.uid), outside(range, jailUser.gid)];
  buildDevices(`${root}/dev`, `${owned}mode=1777,size=${spec.tmpfsBytes.shm}`, { uid, gid });
  changeRoot(root);
}

/** Makes the settings of the machine read-only, for the agent too. Call it inside the new root. */
export function protectMachine(): void {
  for (const path of machineSettings.map((name) => `/proc/${name}`)) {
    if (!existsSync(path)) continue;
    mount(path, path, null, bind);
    mount("none", path, null, remount | bind | readOnly | noSuid | noDev | noExec);
  }
}

/** Replaces each folder by the path at which it is mounted with the ids of the sandbox. */
function mapFolders(spec: JailSpec, mapped: MappedFolders): JailSpec {
  const tree = mapped.map(spec.tree);
  const inTree = (path: string) => path.replace(spec.tree, tree);
  const overlay = ({ lower, upper, work }: JailSpec["root"]) => ({
    lower: lower.map((folder) => mapped.map(folder)),
    upper: inTree(upper),
    work: inTree(work),
  });
  return {
    ...spec,
    root: overlay(spec.root),
    usr: overlay(spec.usr),
    packages: spec.packages === null ? null : overlay(spec.packages),
    workspace: inTree(spec.workspace),
    readOnlyFolders: spec.readOnlyFolders.map((folder) => mapped.map(folder)),
  };
}

/**
 * Turns off every feature that relies on an unchanged lower folder: the host's /usr changes with its upgrades.
 * Without root, overlay must store its marks in `user.` attributes; that mode excludes redirects and rejects the
 * option `redirect_dir`.
 */
function overlayOptions(spec: JailSpec, layers: JailSpec["root"]): string {
  const { lower, upper, work } = layers;
  const lowers = lower.map(escapePath).join(":");
  const folders = `lowerdir=${lowers},upperdir=${escapePath(upper)},workdir=${escapePath(work)}`;
  const stable = `${folders},index=off,metacopy=off,xino=off`;
  return spec.user.kind === "mapped" ? `${stable},userxattr` : `${stable},redirect_dir=off`;
}

function escapePath(path: string): string {
  return path.replace(/[\\,:]/g, (character) => `\\${character}`);
}

function bindReadOnly(from: string, to: string, suid: bigint): void {
  mount(from, to, null, bind);
  mount("none", to, null, remount | bind | readOnly | suid | noDev);
}

function buildDevices(dev: string, shmOptions: string, user: { uid: number; gid: number }): void {
  mount("tmpfs", dev, "tmpfs", noSuid | noDev | noExec, "mode=755,size=65536");
  for (const name of devices) {
    writeFileSync(`${dev}/${name}`, "");
    mount(`/dev/${name}`, `${dev}/${name}`, null, bind);
  }
  for (const [name, target] of Object.entries(deviceLinks)) symlinkSync(target, `${dev}/${name}`);
  mkdirSync(`${dev}/pts`);
  const owner = `uid=${user.uid},gid=${user.gid},mode=620,ptmxmode=666`;
  const bounds = `max=${terminalsMax}`;
  mount("devpts", `${dev}/pts`, "devpts", noSuid | noExec, `newinstance,${bounds},${owner}`);
  mkdirSync(`${dev}/shm`);
  mount("tmpfs", `${dev}/shm`, "tmpfs", noSuid | noDev, shmOptions);
}
