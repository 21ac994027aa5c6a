/**
 * Owns which repository a checkout is of, in one text that is the same on every machine.
 * Does not own scopes: the text is a part of one.
 */
import { randomBytes } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Of the protocols that git speaks; another port is another server. */
const usualPorts: Record<string, string> = {
  "ssh:": "22",
  "git:": "9418",
  "http:": "80",
  "https:": "443",
};

/** `github.com/owner/name`, however the address is written; nothing where it names a place on this machine. */
export function normaliseRemote(written: string): string | undefined {
  const text = written.trim();
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return ofUrl(text);
  // As scp has it: `user@host:path`. A slash before the colon makes it a path; one letter is a drive.
  const [, host, path] = /^(?:[^@/]+@)?(\[[^\]]+\]|[^:/]+):(.*)$/.exec(text) ?? [];
  if (host === undefined || path === undefined || host.length < 2) return undefined;
  return joined(host, path);
}

function ofUrl(text: string): string | undefined {
  const plain = text.replace(/^(?:git\+)?(ssh|https?)(?:\+git)?:/i, "$1:");
  if (!URL.canParse(plain)) return undefined;
  const { protocol, port, pathname, hostname } = new URL(plain);
  if (hostname === "" || usualPorts[protocol] === undefined) return undefined;
  const isUsual = port === "" || port === usualPorts[protocol];
  return joined(isUsual ? hostname : `${hostname}:${port}`, decoded(pathname));
}

function joined(host: string, path: string): string | undefined {
  const clean = path
    .replace(/\/+/g, "/")
    .replace(/^\//, "")
    .replace(/\/$/, "")
    .replace(/\.git$/, "")
    .replace(/\/$/, "");
  return clean === "" ? undefined : `${host.toLowerCase().replace(/\.$/, "")}/${clean}`;
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** Of a repository without a remote: drawn once, kept in its git folder, shared by its worktrees. */
export function storedId(commonDir: string): string {
  const folder = join(commonDir, "berth");
  const path = join(folder, "id");
  const stored = read(path);
  if (stored !== undefined) return `id/${stored}`;
  mkdirSync(folder, { recursive: true });
  const beside = `${path}.${process.pid}.new`;
  writeFileSync(beside, `${randomBytes(12).toString("hex")}\n`);
  try {
    // Of two that draw at once the first one's stays.
    linkSync(beside, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    // One that was cut off in the middle of being written by another program is no id.
    if (read(path) === undefined) writeFileSync(path, readFileSync(beside));
  } finally {
    rmSync(beside, { force: true });
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
