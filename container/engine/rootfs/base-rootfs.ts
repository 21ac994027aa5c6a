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
import { jailHome, jailHomeOfClients, jailHostName, jailUser } from "../jail/identity.ts";
import { log, messageOf } from "../log.ts";
import { isDiskFullError } from "./file-work.ts";
import { type DataFolders, moveToTrash, temporaryFolder } from "./folders.ts";

const folders = [
  ...["dev", "etc", "home", "mnt", "opt", "proc", "root", "run", "srv", "tmp", "usr", "workspace"],
  ...["var", "var/cache", "var/lib", "var/log", "var/tmp"],
  ...[jailHome, jailHomeOfClients].map((folder) => folder.slice(1)),
];

const links = { "var/run": "/run", "var/lock": "/run/lock", "etc/mtab": "/proc/self/mounts" };

const codeFolders = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/** Public files that programs in /usr need. None of them can hold a password or a token. */
const etcCopied = [
  ...["alternatives", "ca-certificates", "ca-certificates.conf", "ssl/certs", "ssl/openssl.cnf"],
  ...["ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "timezone", "os-release"],
  ...["debian_version", "mime.types", "protocols", "services", "networks", "gai.conf"],
  ...["bash.bashrc", "profile", "inputrc", "magic", "magic.mime", "fonts", "terminfo", "perl"],
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
  for (const [name, text] of Object.entries(etcFiles(resolvConf))) {
    writeFileSync(`${base}/etc/${name}`, text);
  }
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

function etcFiles(resolvConf: string): Record<string, string> {
  const { name, uid, gid } = jailUser;
  return {
    passwd:
      `root:x:0:0:root:/root:/usr/sbin/nologin\n` +
      `${name}:x:${uid}:${gid}::${jailHome}:/bin/${existsSync("/bin/bash") ? "bash" : "sh"}\n` +
      `nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n`,
    group: `root:x:0:\ntty:x:5:\n${name}:x:${gid}:\nnogroup:x:65534:\n`,
    hostname: `${jailHostName}\n`,
    hosts: `127.0.0.1 localhost ${jailHostName}\n::1 localhost ip6-localhost ip6-loopback\n`,
    "resolv.conf": resolvConf,
    "nsswitch.conf":
      "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    shells: readIfPresent("/etc/shells"),
  };
}

function readIfPresent(path: string): string {
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}
