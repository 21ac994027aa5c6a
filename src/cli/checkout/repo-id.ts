/** Identifies the repository of a checkout by a text that is the same on every machine. */
import { randomBytes } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The default ports of git's protocols. Another port is another server. */
const defaultPorts: Record<string, string> = {
  "ssh:": "22",
  "git:": "9418",
  "http:": "80",
  "https:": "443",
};

/** `github.com/owner/name`, however the URL is written; undefined for a path of this machine. */
export function normaliseRemote(written: string): string | undefined {
  const text = written.trim();
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return normaliseUrl(text);
  // scp's form, `user@host:path`. A slash before the colon makes it a path; a single letter is a drive.
  const [, host, path] = /^(?:[^@/]+@)?(\[[^\]]+\]|[^:/]+):(.*)$/.exec(text) ?? [];
  if (host === undefined || path === undefined || host.length < 2) return undefined;
  return joinHostPath(host, path);
}

function normaliseUrl(text: string): string | undefined {
  const plain = text.replace(/^(?:git\+)?(ssh|https?)(?:\+git)?:/i, "$1:");
  if (!URL.canParse(plain)) return undefined;
  const { protocol, port, pathname, hostname } = new URL(plain);
  if (hostname === "" || defaultPorts[protocol] === undefined) return undefined;
  const isUsual = port === "" || port === defaultPorts[protocol];
  return joinHostPath(isUsual ? hostname : `${hostname}:${port}`, decodePath(pathname));
}

function joinHostPath(host: string, path: string): string | undefined {
  const clean = path
    .replace(/\/+/g, "/")
    .replace(/^\//, "")
    .replace(/\/$/, "")
    .replace(/\.git$/, "")
    .replace(/\/$/, "");
  return clean === "" ? undefined : `${host.toLowerCase().replace(/\.$/, "")}/${clean}`;
}

function decodePath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** The id of a repository without a remote: generated once, stored in its git folder, shared by its worktrees. */
export function readOrCreateId(commonDir: string): string {
  const folder = join(commonDir, "berth");
  const path = join(folder, "id");
  const stored = read(path);
  if (stored !== undefined) return `id/${stored}`;
  mkdirSync(folder, { recursive: true });
  const temporary = `${path}.${process.pid}.new`;
  writeFileSync(temporary, `${randomBytes(12).toString("hex")}\n`);
  try {
    // If two processes generate one at once, the first one stays.
    linkSync(temporary, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    // An incomplete id that another program was writing does not count.
    if (read(path) === undefined) writeFileSync(path, readFileSync(temporary));
  } finally {
    rmSync(temporary, { force: true });
  }
  return `id/${read(path)}`;
}

function read(path: string): string | undefined {
  try {
    return /^([0-9a-f]{24})\n?$/.exec(readFileSync(path, "utf8"))?.[1];
  } catch {
    return undefined;
  }
}
