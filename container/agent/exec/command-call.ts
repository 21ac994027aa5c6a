/**
 * Owns reading the fields by which calls name a program and its input, by hand: command, argv, cwd, env, stdin.
 * Does not own which of them a call has (read-call.ts and its like). src/protocol/fields/command.ts is the form; tests hold
 * these readings and the schemas together.
 */
import { limits } from "../../../src/protocol/limits.ts";
import { kernelTextOf, numberOf, objectOf, refuse, textOf } from "../server/fields.ts";

export type Encoding = "utf8" | "base64";

type Program = {
  command?: string;
  argv?: string[];
  cwd?: string;
  env?: Record<string, string>;
};

export const programFields = ["command", "argv", "cwd", "env"];

const envName = /^[A-Za-z_][A-Za-z0-9_]*$/;
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** By a shell or as arguments, one of the two; where, and with what environment. */
export function programOf({ command, argv, cwd, env }: Record<string, unknown>): Program {
  if ((command === undefined) === (argv === undefined)) {
    refuse("command", "or argv must be given, not both");
  }
  const read: Program = {};
  if (command !== undefined) read.command = commandOf(command);
  if (argv !== undefined) read.argv = argvOf(argv);
  if (cwd !== undefined) read.cwd = cwdOf(cwd);
  if (env !== undefined) read.env = envOf(env);
  demandFit(read);
  return read;
}

export function commandOf(value: unknown): string {
  const command = kernelTextOf(value, "command", limits.argBytesMax);
  if (command === "") refuse("command", "must not be empty");
  return command;
}

export function argvOf(value: unknown): string[] {
  if (!Array.isArray(value)) refuse("argv", "must be a list of texts");
  if (value.length < 1 || value.length > limits.argCountMax) {
    refuse("argv", `must have 1 to ${limits.argCountMax} entries`);
  }
  const argv = value.map((arg, at) => kernelTextOf(arg, `argv.${at}`, limits.argBytesMax));
  if (argv[0] === "") refuse("argv", "must begin with the name of a program");
  return argv;
}

export function cwdOf(value: unknown): string {
  const cwd = kernelTextOf(value, "cwd", limits.pathBytesMax);
  if (cwd === "") refuse("cwd", "must not be empty");
  return cwd;
}

/** Of the create call's environment too. */
export function envOf(value: unknown): Record<string, string> {
  const entries = Object.entries(objectOf(value, "env"));
  if (entries.length > limits.envCountMax) {
    refuse("env", `must have at most ${limits.envCountMax} variables`);
  }
  for (const [name, text] of entries) {
    if (!envName.test(name) || name.length > limits.envNameBytesMax) {
      refuse(`env.${name}`, "must be a name of letters, digits and _");
    }
    kernelTextOf(text, `env.${name}`, limits.envValueBytesMax);
  }
  return Object.fromEntries(entries) as Record<string, string>;
}

/** What the kernel counts of them. */
export function demandFit({ argv, env }: Pick<Program, "argv" | "env">): void {
  let bytes = 0;
  for (const arg of argv ?? []) bytes += Buffer.byteLength(arg) + 9;
  for (const [name, text] of Object.entries(env ?? {})) {
    bytes += name.length + Buffer.byteLength(text) + 10;
  }
  if (bytes > limits.argTotalBytesMax) {
    refuse("argv", `and env together must be at most ${limits.argTotalBytesMax} bytes`);
  }
}

export function encodingOf(value: unknown): Encoding {
  if (value === undefined) return "utf8";
  if (value !== "utf8" && value !== "base64") refuse("encoding", "must be utf8 or base64");
  return value;
}

export function stdinOf(value: unknown, encoding: Encoding): string {
  const text = textOf(value, "stdin");
  const fits =
    encoding === "utf8"
      ? text.isWellFormed() && Buffer.byteLength(text) <= limits.stdinBytesMax
      : base64.test(text) && text.length <= Math.ceil(limits.stdinBytesMax / 3) * 4;
  if (!fits) {
    refuse("stdin", `must be valid ${encoding} and at most ${limits.stdinBytesMax} bytes`);
  }
  return text;
}

export function maxOutputBytesOf(value: unknown): number {
  const bytes = value === undefined ? limits.execOutputDefaultBytes : value;
  return numberOf(bytes, "maxOutputBytes", { min: 0, max: limits.execOutputMaxBytes });
}

/** Of one command; `otherwise` where the call leaves it out. */
export function timeoutOf(value: unknown, otherwise: number, max: number): number {
  return numberOf(value === undefined ? otherwise : value, "timeoutMs", { min: 1, max });
}
