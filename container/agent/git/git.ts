/** Runs git once, as a command of the sandbox: its environment, its credentials, its messages as they arrive. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { createMemoryFile } from "../../engine/jail/descriptors.ts";
import { runProgram } from "../exec/command.ts";
import { findProgram } from "../exec/program.ts";
import { buildEnvironment, type SandboxEnv } from "../exec/sandbox-env.ts";
import type { SandboxDeps } from "../sandbox-deps.ts";
import type { Exit } from "../supervision/process-tree.ts";
import type { Credentials } from "./address.ts";

type GitRun = {
  args: string[];
  cwd: string;
  /**
   * Passed in a memory file that only git's process tree inherits, never in an argument, the environment or a file of the
   * sandbox.
   */
  credentials: Credentials | undefined;
  timeoutMs: number;
  onStderr: (bytes: Uint8Array) => void;
};

const protocols = "https:http:ssh:git:file";
/** The credentials arrive as standard input and move to descriptor 3, where no program reads input. */
const script = 'exec 3<&0 </dev/null; exec git "$@"';
/** Opened by its path in /proc: git may ask more than once, and each time reads from the beginning. */
const helper = '!f() { test "$1" = get && cat /proc/self/fd/3; }; f';

/** Must stay synchronous down to the start of the process: nothing can raise the fence between its check and the start. */
export async function runGit(
  { sandboxEnv, supervisor }: Pick<SandboxDeps, "sandboxEnv" | "supervisor">,
  { args, cwd, credentials, timeoutMs, onStderr }: GitRun,
  signal: AbortSignal,
): Promise<Exit & { timedOut: boolean }> {
  const env = gitEnvironment(sandboxEnv, credentials);
  requireGit(cwd, env, sandboxEnv);
  const argv = ["sh", "-c", script, "git", ...args];
  const program = { program: "/bin/sh", argv, cwd, env, user: sandboxEnv.user };
  const ran = await runProgram(program, supervisor, {
    stdin: openCredentials(credentials),
    onOutput: (stream, bytes) => {
      if (stream === "stderr") onStderr(bytes);
    },
    timeoutMs,
    signal,
  });
  if (!("exit" in ran)) throw new Error(`git did not start: ${ran.line}`);
  return { ...ran.exit, timedOut: ran.timedOut };
}

function openCredentials(credentials: Credentials | undefined): number | "ignore" {
  if (credentials === undefined) return "ignore";
  const { username, password } = credentials;
  return createMemoryFile(`username=${username}\npassword=${password}\n`);
}

/** Settings in the environment win over all settings of the sandbox, and are not written to a file. */
function gitEnvironment(sandboxEnv: SandboxEnv, credentials: Credentials | undefined) {
  const settings = gitSettings(credentials);
  const variables = Object.fromEntries(
    settings.flatMap(([key, value], index) => [
      [`GIT_CONFIG_KEY_${index}`, key],
      [`GIT_CONFIG_VALUE_${index}`, value],
    ]),
  );
  return buildEnvironment(sandboxEnv, {
    ...{ GIT_SSH_COMMAND: "ssh -oBatchMode=yes", ...sandboxEnv.env },
    ...{ GIT_TERMINAL_PROMPT: "0", GIT_ALLOW_PROTOCOL: protocols, LC_ALL: "C" },
    ...(settings.length === 0 ? {} : { ...variables, GIT_CONFIG_COUNT: String(settings.length) }),
  });
}

function requireGit(cwd: string, env: Record<string, string>, { lookup }: SandboxEnv): void {
  if (typeof findProgram("git", { cwd, env, lookup }) === "string") return;
  throw new BerthError("unsupported", "This container has no git.", {
    hint: "Install it with a command, or use an image that has it.",
  });
}

/** Bound to one origin, so that a redirect to another one gets nothing. Other helpers are switched off: they would store it. */
function gitSettings(credentials: Credentials | undefined): [key: string, value: string][] {
  if (credentials === undefined) return [];
  return [
    ["credential.helper", ""],
    [`credential.${credentials.origin}.helper`, helper],
  ];
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
