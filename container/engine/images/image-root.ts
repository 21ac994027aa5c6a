/** Describes the lower layers of a sandbox that has an image: Berth's own small layer on top of those of the image. */
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { jailHome, jailHostName, jailUser } from "../jail/identity.ts";
import { type DataFolders, moveToTrash, temporaryFolder } from "../rootfs/folders.ts";
import type { ImageStore, StoredImage } from "./store.ts";

const modes: Record<string, number> = {
  ...{ dev: 0o755, proc: 0o755, sys: 0o755, run: 0o755, tmp: 0o1777, etc: 0o755, usr: 0o755 },
  ...{ workspace: 0o755, var: 0o755, "var/tmp": 0o1777, home: 0o755 },
};

/** Highest first, for the root and for /usr, which has an overlay of its own. */
export function lowersOf(
  store: ImageStore,
  folders: DataFolders,
  image: StoredImage,
  resolvConf: string,
): { root: string[]; usr: string[] } {
  const layers = image.layers.map((layer) => store.layer(layer)).reverse();
  const own = `${folders.images}/tops/${image.digest.slice("sha256:".length).slice(0, 24)}`;
  writeTop(folders, own, layers, resolvConf);
  const root = [own, ...layers];
  return { root, usr: root.map((layer) => `${layer}/usr`).filter(isRealFolder) };
}

/** Written for each start: the machine's name servers may have changed. */
function writeTop(
  folders: DataFolders,
  path: string,
  layers: readonly string[],
  resolvConf: string,
): void {
  const files = etcFiles(layers, resolvConf);
  const isCurrent = Object.entries(files).every(
    ([name, text]) =>
      existsSync(`${path}/etc/${name}`) && readFileSync(`${path}/etc/${name}`, "utf8") === text,
  );
  if (isCurrent) return;
  const top = temporaryFolder(folders, "top");
  mkdirSync(top, { mode: 0o755 });
  for (const [name, mode] of Object.entries(modes)) {
    mkdirSync(`${top}/${name}`, { recursive: true });
    chmodSync(`${top}/${name}`, mode);
  }
  mkdirSync(`${top}${jailHome}`, { recursive: true });
  chownSync(`${top}${jailHome}`, jailUser.uid, jailUser.gid);
  for (const [name, text] of Object.entries(files)) writeFileSync(`${top}/etc/${name}`, text);
  mkdirSync(`${folders.images}/tops`, { recursive: true, mode: 0o755 });
  if (existsSync(path)) moveToTrash(folders, path);
  renameSync(top, path);
}

/** The image's own users, and Berth's if the image has none of that name or number. */
function etcFiles(layers: readonly string[], resolvConf: string): Record<string, string> {
  const { name, uid, gid } = jailUser;
  const passwd = readEtc(layers, "passwd") ?? "root:x:0:0:root:/root:/bin/sh\n";
  const group = readEtc(layers, "group") ?? "root:x:0:\n";
  const shell = layers.some((layer) => existsSync(`${layer}/bin/bash`)) ? "/bin/bash" : "/bin/sh";
  return {
    passwd: withEntry(passwd, name, uid, `${name}:x:${uid}:${gid}::${jailHome}:${shell}`),
    group: withEntry(group, name, gid, `${name}:x:${gid}:`),
    hostname: `${jailHostName}\n`,
    hosts: `127.0.0.1 localhost ${jailHostName}\n::1 localhost ip6-localhost ip6-loopback\n`,
    "resolv.conf": resolvConf,
  };
}

function withEntry(text: string, name: string, id: number, entry: string): string {
  const isThere = text
    .split("\n")
    .map((line) => line.split(":"))
    .some(([entryName, , entryId]) => entryName === name || entryId === String(id));
  return isThere ? text : `${text.replace(/\n?$/, "\n")}${entry}\n`;
}

/** The file of the highest layer that has it. A link could lead out of the layer. */
function readEtc(layers: readonly string[], name: string): string | undefined {
  for (const layer of layers) {
    if (!isRealFolder(`${layer}/etc`)) continue;
    const file = `${layer}/etc/${name}`;
    const status = lstatSync(file, { throwIfNoEntry: false });
    if (status?.isFile()) return readFileSync(file, "utf8");
    if (status !== undefined) return undefined;
  }
  return undefined;
}

function isRealFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
