/**
 * Passes credentials to git in a memory file that only its process tree inherits, never in an argument, the environment
 * or a file of the sandbox; and redacts them from git's messages.
 */
import { writeSync } from "node:fs";
import { createMemoryFile } from "../kernel/libc.ts";
import type { Credentials } from "./address.ts";

/** Opened by its path in /proc: git may ask more than once, and each time reads from the beginning. */
const helper = '!f() { test "$1" = get && cat /proc/self/fd/3; }; f';

/** Bound to one origin, so that a redirect to another one gets nothing. Other helpers are switched off: they would store it. */
export function gitSettings(credentials: Credentials | undefined): [key: string, value: string][] {
  if (credentials === undefined) return [];
  return [
    ["credential.helper", ""],
    [`credential.${credentials.origin}.helper`, helper],
  ];
}

/** The caller closes the descriptor. */
export function openCredentialsFile(credentials: Credentials | undefined): number | "ignore" {
  if (credentials === undefined) return "ignore";
  const fd = createMemoryFile();
  const { username, password } = credentials;
  writeSync(fd, `username=${username}\npassword=${password}\n`, 0);
  return fd;
}

/** Covers what git, its settings or a server may repeat of them. */
export function redact(credentials: Credentials | undefined, text: string): string {
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
    .sort((left, right) => right.length - left.length)
    .reduce((clean, form) => clean.replaceAll(form, "***"), text);
}
