/**
 * Owns what an address says: where git goes, without any secret, with which credentials, and what the folder is
 * called. Does not own how git is told them (credentials.ts).
 */
import type { CloneCall } from "../../../src/protocol/git.ts";
import { refuse } from "../server/fields.ts";

export type Credentials = {
  username: string;
  password: string;
  /** To whom alone they go: scheme, host and port. */
  origin: string;
};

export type Address = { url: string; credentials: Credentials | undefined };

export function addressOf({ url, credentials }: CloneCall): Address {
  if (url.startsWith("-")) refuse("url", "must not begin with -");
  const scheme = /^([a-z]+):\/\//.exec(url)?.[1];
  if (scheme !== "http" && scheme !== "https") {
    if (credentials !== undefined) refuse("credentials", "are for https and http addresses alone");
    if (/^[a-z]+:\/\/[^/@]*:[^/@]*@/.test(url)) {
      refuse("url", "must not hold a password: only https and http have a use for one");
    }
    return { url, credentials: undefined };
  }
  return webAddressOf(url, credentials);
}

function webAddressOf(text: string, credentials: CloneCall["credentials"]): Address {
  const url = parsed(text);
  const { username, password } = url;
  url.username = "";
  url.password = "";
  const hasOwn = username !== "" || password !== "";
  if (hasOwn && credentials !== undefined) {
    refuse("credentials", "stand in the url too: give them once");
  }
  const given = hasOwn ? { username: decoded(username), password: decoded(password) } : credentials;
  if (given === undefined) return { url: url.href, credentials: undefined };
  for (const [name, secret] of Object.entries(given)) {
    // git is told them line by line.
    if (/[\n\r\0]/.test(secret)) refuse(`credentials.${name}`, "must be one line");
  }
  return { url: url.href, credentials: { ...given, origin: url.origin } };
}

function parsed(text: string): URL {
  try {
    return new URL(text);
  } catch {
    return refuse("url", "is no address");
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return refuse("url", "must be percent-encoded UTF-8");
  }
}

/** As git itself calls it, unless the call names one. */
export function folderNameOf({ url, dir }: CloneCall): string {
  if (dir !== undefined) return dir;
  const path = url.replace(/[?#].*$/, "").replace(/\/+$/, "");
  const name = (path.split(/[/:]/).at(-1) ?? "").replace(/\.git$/, "");
  if (name === "" || name === "." || name === ".." || path.endsWith("//")) {
    refuse("dir", "must be given: the url ends with no name");
  }
  return name;
}
