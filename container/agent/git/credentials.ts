/**
 * Owns how git is told credentials: by a file in memory that this one tree of processes inherits, never in an
 * argument, the environment or a file of the sandbox; and how they are taken out of what git says.
 */
import { writeSync } from "node:fs";
import { openMemory } from "../kernel/libc.ts";
import type { Credentials } from "./address.ts";

/** Read by its name among the descriptors: git may ask more than once, each time from the beginning. */
const helper = '!f() { test "$1" = get && cat /proc/self/fd/3; }; f';

/** Bound to one origin: a server that leads elsewhere learns nothing. Other helpers would store it. */
export function settingsFor(credentials: Credentials | undefined): [key: string, value: string][] {
  if (credentials === undefined) return [];
  return [
    ["credential.helper", ""],
    [`credential.${credentials.origin}.helper`, helper],
  ];
}

/** For the caller to close. */
export function memoryFor(credentials: Credentials | undefined): number | "ignore" {
  if (credentials === undefined) return "ignore";
  const fd = openMemory();
  const { username, password } = credentials;
  writeSync(fd, `username=${username}\npassword=${password}\n`, 0);
  return fd;
}

/** Whatever git, its settings or a server repeat of it. */
export function without(credentials: Credentials | undefined, text: string): string {
  if (credentials === undefined) return text;
  const { username, password } = credentials;
  const pair = `${username}:${password}`;
  // A token is often given as the name, with no password.
  const secrets = [pair, password === "" ? username : password];
  const forms = secrets.flatMap((secret) => [
    secret,
    encodeURIComponent(secret),
    Buffer.from(secret).toString("base64").replace(/=+$/, ""),
  ]);
  return forms
    .filter((form) => form !== "")
    .sort((one, other) => other.length - one.length)
    .reduce((clean, form) => clean.replaceAll(form, "***"), text);
}
