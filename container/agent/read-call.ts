/**
 * Owns the check that an exec call has the form of agentExecCallSchema, by hand.
 * Does not own that form: the door has held the call against the schema already; a test holds this reading and
 * the schema together.
 */
import type { AgentExecCall } from "../../src/protocol/agent.ts";
import { limits } from "../../src/protocol/limits.ts";
import { callOf, numberOf, objectOf, refuse, textOf } from "./fields.ts";

const fields = [
  ...["command", "argv", "cwd", "env", "stdin", "timeoutMs", "maxOutputBytes", "encoding"],
  ...["execId", "requestId"],
];
const envName = /^[A-Za-z_][A-Za-z0-9_]*$/;
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

export function readExecCall(value: unknown): AgentExecCall {
  const call = callOf(value, fields);
  const { command, argv, cwd, env, stdin } = call;
  if ((command === undefined) === (argv === undefined)) {
    refuse("command", "or argv must be given, not both");
  }
  const encoding = call.encoding ?? "utf8";
  if (encoding !== "utf8" && encoding !== "base64") refuse("encoding", "must be utf8 or base64");
  const read: AgentExecCall = {
    execId: textOf(call.execId, "execId"),
    requestId: textOf(call.requestId, "requestId"),
    timeoutMs: numberOf(call.timeoutMs ?? limits.execTimeoutDefaultMs, "timeoutMs", {
      min: 1,
      max: limits.execTimeoutMaxMs,
    }),
    maxOutputBytes: numberOf(
      call.maxOutputBytes ?? limits.execOutputDefaultBytes,
      "maxOutputBytes",
      { min: 0, max: limits.execOutputMaxBytes },
    ),
    encoding,
  };
  if (command !== undefined) {
    read.command = kernelTextOf(command, "command", limits.argBytesMax);
    if (read.command === "") refuse("command", "must not be empty");
  }
  if (argv !== undefined) read.argv = argvOf(argv);
  if (cwd !== undefined) {
    read.cwd = kernelTextOf(cwd, "cwd", limits.pathBytesMax);
    if (read.cwd === "") refuse("cwd", "must not be empty");
  }
  if (env !== undefined) read.env = envOf(env);
  if (stdin !== undefined) read.stdin = stdinOf(stdin, encoding);
  if (kernelBytes(read) > limits.argTotalBytesMax) {
    refuse("argv", `and env together must be at most ${limits.argTotalBytesMax} bytes`);
  }
  return read;
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

function argvOf(value: unknown): string[] {
  if (!Array.isArray(value)) refuse("argv", "must be a list of texts");
  if (value.length < 1 || value.length > limits.argCountMax) {
    refuse("argv", `must have 1 to ${limits.argCountMax} entries`);
  }
  const argv = value.map((arg, at) => kernelTextOf(arg, `argv.${at}`, limits.argBytesMax));
  if (argv[0] === "") refuse("argv", "must begin with the name of a program");
  return argv;
}

function stdinOf(value: unknown, encoding: "utf8" | "base64"): string {
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

function kernelBytes(call: AgentExecCall): number {
  let bytes = 0;
  for (const arg of call.argv ?? []) bytes += Buffer.byteLength(arg) + 9;
  for (const [name, text] of Object.entries(call.env ?? {})) {
    bytes += name.length + Buffer.byteLength(text) + 10;
  }
  return bytes;
}

function kernelTextOf(value: unknown, field: string, bytesMax: number): string {
  const text = textOf(value, field);
  if (text.includes("\0")) refuse(field, "must not contain a NUL");
  if (!text.isWellFormed()) refuse(field, "must be well-formed Unicode");
  if (Buffer.byteLength(text) > bytesMax) refuse(field, `must be at most ${bytesMax} bytes`);
  return text;
}
