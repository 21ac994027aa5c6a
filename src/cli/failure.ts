/** The command's own failures, and the one place that prints a failure: on stderr, or as JSON. */
import { CommanderError } from "commander";
import { asBerthError } from "../protocol/error-codes.ts";
import { hintFor, hintForSystem } from "./hints.ts";
import { Interrupted } from "./interrupts.ts";
import type { Output } from "./output/output.ts";

type FailureOptions = {
  /** The next step, in one line. */
  hint?: string | undefined;
  code?: string;
  exitCode?: number;
  /** Printed with `--json`. */
  facts?: Record<string, unknown>;
  cause?: unknown;
};

export class Failure extends Error {
  readonly hint: string | undefined;
  readonly code: string;
  /** Undefined: that of the command. */
  readonly exitCode: number | undefined;
  readonly facts: Record<string, unknown>;

  constructor(message: string, options: FailureOptions = {}) {
    super(message, { cause: options.cause });
    this.name = "Failure";
    this.hint = options.hint;
    this.code = options.code ?? "command_failed";
    this.exitCode = options.exitCode;
    this.facts = options.facts ?? {};
  }
}

/** Prints the failure and returns the exit code. Nothing else prints failures. */
export function reportFailure(thrown: unknown, output: Output, command: string): number {
  if (thrown instanceof CommanderError && thrown.exitCode === 0) return 0;
  if (thrown instanceof Interrupted) return reportInterrupt(thrown, output);
  const { message, hint, code, exitCode, facts } = toFailure(thrown, command);
  if (output.json) {
    output.printJson({ error: { ...facts, code, message, hint } });
  } else {
    output.error(message, hint);
  }
  const stack = process.env.BERTH_DEBUG === "1" && thrown instanceof Error ? thrown.stack : "";
  if (stack) output.info(...stack.split("\n"));
  return exitCode ?? failureExitCode(command, code);
}

/** Berth's own failures, where the exit code is otherwise that of the command that was run; as of `docker run`. */
export const ownFailureCode = 125;
/** As of `timeout`. */
export const timeoutCode = 124;

const runsCommand = new Set(["berth exec", "berth lock", "berth attach"]);

function failureExitCode(command: string, code: string): number {
  if (!runsCommand.has(command)) return 1;
  return code === "lease_wait_timeout" ? timeoutCode : ownFailureCode;
}

/** Returns the exit code of an interrupt. People get no message: they have caused it. */
export function reportInterrupt({ signal, exitCode }: Interrupted, output: Output): number {
  if (output.json && !output.hasDocument) {
    output.printJson({ error: { code: "interrupted", message: `Ended by ${signal}.`, signal } });
  }
  return exitCode;
}

function toFailure(thrown: unknown, command: string): Failure {
  if (thrown instanceof Failure) return thrown;
  if (thrown instanceof CommanderError) {
    const [message = "", suggestion] = thrown.message.replace(/^error: /, "").split("\n");
    return new Failure(toSentence(message), {
      // The suggestion in brackets names the closest option or command.
      hint: suggestion?.replace(/^\((.*)\)$/, "$1") ?? usageHint(command),
      code: "bad_usage",
    });
  }
  const known = asBerthError(thrown);
  if (known !== undefined) {
    const { code, facts } = known;
    const isWaitOver = code === "lease_wait_timeout" && typeof facts.holder === "string";
    const message = isWaitOver ? `${facts.holder} still uses the sandbox.` : known.message;
    return new Failure(message, { code, facts, hint: hintFor(code, command) ?? known.hint });
  }
  const { code, syscall, path }: Partial<NodeJS.ErrnoException> =
    thrown instanceof Error ? thrown : {};
  // An operation of this machine failed: not a bug in the command.
  if (syscall !== undefined && code !== undefined) {
    return new Failure(messageOf(thrown), { code: "local_io", hint: hintForSystem(code, path) });
  }
  return new Failure(messageOf(thrown), {
    code: "internal",
    hint: "This is a bug in `berth`. Set BERTH_DEBUG=1 to see where it happened.",
  });
}

export function usageHint(command: string): string {
  return `Run \`${command} --help\` for usage.`;
}

function toSentence(text: string): string {
  const sentence = capitalise(text);
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}

export function capitalise(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
