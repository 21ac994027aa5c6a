/**
 * Writes the lowest layer of every sandbox's root: empty folders, the host's links, and a generated /etc. It is
 * rewritten at each start of the engine, so that it follows the host's certificates.
 */
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import {
  jailHome,
  jailHomeOfClients,
  jailHostName,
  jailUser,
  packagesFolder,
} from "../jail/identity.ts";
import { log, messageOf } from "../log.ts";
import { isDiskFullError } from "./file-work.ts";
import { type DataFolders, moveToTrash, temporaryFolder } from "./folders.ts";

const folders = [
  ...["dev", "etc", "home", "mnt", "opt", "proc", "root", "run", "srv", "tmp", "usr", "workspace"],
  ...["var", "var/cache", "var/lib", "var/log", "var/tmp"],
  ...[jailHome, jailHomeOfClients, packagesFolder].map((folder) => folder.slice(1)),
];

const links = { "var/run": "/run", "var/lock": "/run/lock", "etc/mtab": "/proc/self/mounts" };

const codeFolders = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/** Public files that programs in /usr need. None of them can hold a password or a token. */
const etcCopied = [
  ...["alternatives", "ca-certificates", "ca-certificates.conf", "ssl/certs", "ssl/openssl.cnf"],
  ...["ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "timezone", "os-release"],
  ...["debian_version", "mime.types", "protocols", "services", "networks", "gai.conf"],
  ...["bash.bashrc", "profile", "inputrc", "magic", "magic.mime", "fonts", "terminfo", "perl"],
  // What adding packages and users needs.
  ...["apt", "dpkg", "debconf.conf", "adduser.conf", "deluser.conf", "login.defs", "skel", "pam.d"],
  ...["pam.conf", "security", "default/useradd", "profile.d"],
];
const etcCopiedPattern = /^(python\d[\d.]*|java-\d+-openjdk)$/;

/** Returns the program folders of the host's root that are no links; the jail mounts them. */
export function writeBaseRootfs(dataFolders: DataFolders, resolvConf: string): string[] {
  const base = temporaryFolder(dataFolders, "base");
  try {
    buildBase(base, resolvConf);
  } catch (error) {
    moveToTrash(dataFolders, base);
    // On a full disk the engine continues with the base of its last start, so that it can still serve its sandboxes.
    if (!isDiskFullError(error) || !existsSync(dataFolders.baseRootfs)) throw error;
    log("base_rootfs_kept", { why: messageOf(error) });
    return hostProgramFolders();
  }
  if (existsSync(dataFolders.baseRootfs)) moveToTrash(dataFolders, dataFolders.baseRootfs);
  renameSync(base, dataFolders.baseRootfs);
  return hostProgramFolders();
}

function buildBase(base: string, resolvConf: string): void {
  for (const folder of folders) mkdirSync(`${base}/${folder}`, { recursive: true });
  for (const [link, target] of Object.entries(links)) symlinkSync(target, `${base}/${link}`);
  for (const folder of ["tmp", "var/tmp"]) chmodSync(`${base}/${folder}`, 0o1777);
  chmodSync(`${base}/root`, 0o700);
  chmodSync(base, 0o755);
  for (const folder of process.getuid?.() === 0 ? [jailHome, jailHomeOfClients] : []) {
    chownSync(`${base}${folder}`, jailUser.uid, jailUser.gid);
  }
  for (const name of etcNames()) copyPublic(`/etc/${name}`, `${base}/etc/${name}`);
  mkdirSync(`${base}/etc/sudoers.d`, { mode: 0o750 });
  for (const [name, text] of Object.entries(etcFiles(resolvConf))) {
    writeFileSync(`${base}/etc/${name}`, text);
  }
  chmodSync(`${base}/etc/sudoers.d/berth`, 0o440);
  for (const name of codeFolders) {
    const onHost = lstatSync(`/${name}`, { throwIfNoEntry: false });
    if (onHost?.isSymbolicLink()) symlinkSync(readlinkSync(`/${name}`), `${base}/${name}`);
    else if (onHost !== undefined) mkdirSync(`${base}/${name}`);
  }
}

function hostProgramFolders(): string[] {
  const shown = codeFolders.filter(
    (name) => lstatSync(`/${name}`, { throwIfNoEntry: false })?.isSymbolicLink() === false,
  );
  return shown.map((name) => `/${name}`);
}

function etcNames(): string[] {
  return [...etcCopied, ...readdirSync("/etc").filter((name) => etcCopiedPattern.test(name))];
}

/** Copies only world-readable files. A folder that cannot be copied is logged and left out. */
function copyPublic(from: string, to: string): void {
  if (lstatSync(from, { throwIfNoEntry: false }) === undefined) return;
  try {
    cpSync(from, to, {
      recursive: true,
      verbatimSymlinks: true,
      preserveTimestamps: true,
      filter: (path) => {
        const it = lstatSync(path);
        if (it.isFile() && path.startsWith("/etc/apt/") && holdsLogin(path)) return false;
        return (
          it.isSymbolicLink() || ((it.isFile() || it.isDirectory()) && (it.mode & 0o004) !== 0)
        );
      },
    });
  } catch (error) {
    if (isDiskFullError(error)) throw error;
    log("etc_left_out", { path: from, why: messageOf(error) });
  }
}

/** Sources of packages may name a user and a password. */
function holdsLogin(path: string): boolean {
  return path.includes("/auth.conf") || /:\/\/[^/\s]+@/.test(readFileSync(path, "latin1"));
}

function etcFiles(resolvConf: string): Record<string, string> {
  const { name, uid, gid } = jailUser;
  const shell = existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh";
  const users = systemEntries("/etc/passwd", [
    "nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin",
  ]);
  const groups = systemEntries("/etc/group", ["tty:x:5:", "nogroup:x:65534:"]);
  return {
    passwd: lines(
      `root:x:0:0:root:/root:${shell}`,
      ...users,
      `${name}:x:${uid}:${gid}::${jailHome}:${shell}`,
    ),
    group: lines("root:x:0:", ...groups, `${name}:x:${gid}:`),
    "sudoers.d/berth": lines(`${name} ALL=(ALL:ALL) NOPASSWD: ALL`),
    hostname: `${jailHostName}\n`,
    hosts: `127.0.0.1 localhost ${jailHostName}\n::1 localhost ip6-localhost ip6-loopback\n`,
    "resolv.conf": resolvConf,
    "nsswitch.conf":
      "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    shells: readIfPresent("/etc/shells"),
  };
}

/**
 * The machine's accounts of its programs, so that packages find theirs; none of a person, and no password. The entries
 * of `least` are there in any case.
 */
function systemEntries(path: string, least: string[]): string[] {
  const known = new Set(["root", jailUser.name]);
  return [...readIfPresent(path).split("\n"), ...least].filter((line) => {
    const [name = "", , id = ""] = line.split(":");
    const isSystem = Number(id) > 0 && (Number(id) < systemIdMax || id === "65534");
    if (!isSystem || known.has(name)) return false;
    known.add(name);
    return true;
  });
}

const systemIdMax = 1000;

function lines(...all: string[]): string {
  return `${all.join("\n")}\n`;
}

function readIfPresent(path: string): string {
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}
