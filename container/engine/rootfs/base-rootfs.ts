/**
 * Owns the lowest layer of every sandbox's root: empty folders, links as on the host, a written /etc.
 * Does not own mounts. Written anew at each start of the engine, so that it follows the host's certificates.
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
import { roomHome, roomHostName, roomUser } from "../jail/identity.ts";
import { log, messageOf } from "../log.ts";
import { lacksRoom } from "./copy.ts";
import { discard, type Places, partBase } from "./folders.ts";

const folders = [
  ...["dev", "etc", "home", "mnt", "opt", "proc", "root", "run", "srv", "tmp", "usr", "workspace"],
  ...["var", "var/cache", "var/lib", "var/log", "var/tmp", roomHome.slice(1)],
];

const links = { "var/run": "/run", "var/lock": "/run/lock", "etc/mtab": "/proc/self/mounts" };

const codeFolders = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/** Public by nature and needed by programs of /usr. Nothing that could hold a password or a token. */
const etcCopied = [
  ...["alternatives", "ca-certificates", "ca-certificates.conf", "ssl/certs", "ssl/openssl.cnf"],
  ...["ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "timezone", "os-release"],
  ...["debian_version", "mime.types", "protocols", "services", "networks", "gai.conf"],
  ...["bash.bashrc", "profile", "inputrc", "magic", "magic.mime", "fonts", "terminfo", "perl"],
];
const etcCopiedPattern = /^(python\d[\d.]*|java-\d+-openjdk)$/;

/** Answers the folders of the host's root that hold programs and are no links: the room shows them. */
export function writeSkeleton(places: Places, resolvConf: string): string[] {
  const base = partBase(places, "skeleton");
  try {
    compose(base, resolvConf);
  } catch (error) {
    discard(places, base);
    // The one of the last start will do: an engine that comes back to a full disk has sandboxes to serve.
    if (!lacksRoom(error) || !existsSync(places.skeleton)) throw error;
    log("skeleton_kept", { why: messageOf(error) });
    return shownFolders();
  }
  if (existsSync(places.skeleton)) discard(places, places.skeleton);
  renameSync(base, places.skeleton);
  return shownFolders();
}

function compose(base: string, resolvConf: string): void {
  for (const folder of folders) mkdirSync(`${base}/${folder}`, { recursive: true });
  for (const [link, target] of Object.entries(links)) symlinkSync(target, `${base}/${link}`);
  for (const folder of ["tmp", "var/tmp"]) chmodSync(`${base}/${folder}`, 0o1777);
  chmodSync(`${base}/root`, 0o700);
  chmodSync(base, 0o755);
  if (process.getuid?.() === 0) chownSync(`${base}${roomHome}`, roomUser.uid, roomUser.gid);
  for (const name of etcNames()) copyPublic(`/etc/${name}`, `${base}/etc/${name}`);
  for (const [name, text] of Object.entries(etcWritten(resolvConf))) {
    writeFileSync(`${base}/etc/${name}`, text);
  }
  for (const name of codeFolders) {
    const onHost = lstatSync(`/${name}`, { throwIfNoEntry: false });
    if (onHost?.isSymbolicLink()) symlinkSync(readlinkSync(`/${name}`), `${base}/${name}`);
    else if (onHost !== undefined) mkdirSync(`${base}/${name}`);
  }
}

function shownFolders(): string[] {
  const shown = codeFolders.filter(
    (name) => lstatSync(`/${name}`, { throwIfNoEntry: false })?.isSymbolicLink() === false,
  );
  return shown.map((name) => `/${name}`);
}

function etcNames(): string[] {
  return [...etcCopied, ...readdirSync("/etc").filter((name) => etcCopiedPattern.test(name))];
}

/** Only what anyone may read: a folder that root alone can see stays on the host, and is said. */
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
    if (lacksRoom(error)) throw error;
    log("etc_left_out", { path: from, why: messageOf(error) });
  }
}

function etcWritten(resolvConf: string): Record<string, string> {
  const { name, uid, gid } = roomUser;
  return {
    passwd:
      `root:x:0:0:root:/root:/usr/sbin/nologin\n` +
      `${name}:x:${uid}:${gid}::${roomHome}:/bin/${existsSync("/bin/bash") ? "bash" : "sh"}\n` +
      `nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n`,
    group: `root:x:0:\ntty:x:5:\n${name}:x:${gid}:\nnogroup:x:65534:\n`,
    hostname: `${roomHostName}\n`,
    hosts: `127.0.0.1 localhost ${roomHostName}\n::1 localhost ip6-localhost ip6-loopback\n`,
    "resolv.conf": resolvConf,
    "nsswitch.conf":
      "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    shells: readIfThere("/etc/shells"),
  };
}

function readIfThere(path: string): string {
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}
