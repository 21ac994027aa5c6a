/** Splits the address of a repository into a URL without secrets, the credentials, and the name of the new folder. */
import type { CloneCall } from "../../../src/protocol/file.ts";
import { refuse } from "../server/fields.ts";

export type Credentials = {
  username: string;
  password: string;
  /** They are sent to this origin only: scheme, host and port. */
  origin: string;
};

export type Address = { url: string; credentials: Credentials | undefined };

export function parseAddress({ url, credentials }: CloneCall): Address {
  if (url.startsWith("-")) refuse("url", "must not begin with -");
  const scheme = /^([a-z]+):\/\//.exec(url)?.[1];
  if (scheme !== "http" && scheme !== "https") {
    if (credentials !== undefined)
      refuse("credentials", "can be used with https and http addresses only");
    if (/^[a-z]+:\/\/[^/@]*:[^/@]*@/.test(url)) {
      refuse("url", "must not contain a password: only https and http can use one");
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
    refuse("credentials", "are also part of the url: give them once");
  }
  const given = hasOwn ? { username: decoded(username), password: decoded(password) } : credentials;
  if (given === undefined) return { url: url.href, credentials: undefined };
  for (const [name, secret] of Object.entries(given)) {
    // git reads them line by line.
    if (/[\n\r\0]/.test(secret)) refuse(`credentials.${name}`, "must be one line");
  }
  return { url: url.href, credentials: { ...given, origin: url.origin } };
}

function parsed(text: string): URL {
  try {
    return new URL(text);
  } catch {
    return refuse("url", "is not an address");
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return refuse("url", "must be percent-encoded UTF-8");
  }
}

/** The name that git itself would choose, unless the call has one. */
export function folderNameOf({ url, dir }: CloneCall): string {
  if (dir !== undefined) return dir;
  const path = url.replace(/[?#].*$/, "").replace(/\/+$/, "");
  const name = (path.split(/[/:]/).at(-1) ?? "").replace(/\.git$/, "");
  if (name === "" || name === "." || name === ".." || path.endsWith("//")) {
    refuse("dir", "is required: the url does not end with a name");
  }
  return name;
}
