/**
 * Owns the command's own failures, and how any failure is put into words: once, on stderr or as JSON.
 * Does not own the failures of the server, which bring their own words (BerthError).
 */
import { CommanderError } from "commander";
import { asBerthError, errors } from "../protocol/errors.ts";
import { hintFor, hintForSystem } from "./hints.ts";
import type { Output } from "./output/output.ts";

type FailureOptions = {
  /** What to do about it, as one line. */
  hint?: string;
  code?: string;
  exitCode?: number;
  /** Goes along with `--json`. */
  facts?: Record<string, unknown>;
  cause?: unknown;
};

export class Failure extends Error {
  readonly hint: string | undefined;
  readonly code: string;
  readonly exitCode: number;
  readonly facts: Record<string, unknown>;

  constructor(message: string, options: FailureOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.name = "Failure";
    this.hint = options.hint;
    this.code = options.code ?? "command_failed";
    this.exitCode = options.exitCode ?? 1;
    this.facts = options.facts ?? {};
  }
}

/** Says it, and gives the exit code. The only place that does. */
export function report(thrown: unknown, output: Output, command: string): number {
  if (thrown instanceof CommanderError && thrown.exitCode === 0) return 0;
  const { message, hint, code, exitCode, facts } = inWords(thrown, command);
  if (output.json) {
    const hinted = hint === undefined ? {} : { hint };
    output.document({ error: { ...facts, code, message, ...hinted } });
  } else {
    output.say(`${output.paint("red", "error:")} ${message}`);
    if (hint !== undefined) output.say(`${output.paint("cyan", "hint:")} ${hint}`);
  }
  return exitCode;
}

function inWords(thrown: unknown, command: string): Failure {
  if (thrown instanceof Failure) return thrown;
  if (thrown instanceof CommanderError) {
    const [message = "", meant] = thrown.message.replace(/^error: /, "").split("\n");
    return new Failure(message, {
      // In brackets: the option or command of the closest name.
      hint: meant?.replace(/^\((.*)\)$/, "$1") ?? `${command} --help says how it is called.`,
      code: "bad_usage",
    });
  }
  const known = asBerthError(thrown);
  if (known !== undefined) {
    const hint = hintFor(known.code, command) ?? known.hint;
    return new Failure(known.message, {
      ...{ code: known.code, facts: known.facts, exitCode: errors[known.code].exitCode },
      ...(hint === undefined ? {} : { hint }),
    });
  }
  const system = systemError(thrown);
  if (system !== undefined) {
    const hint = hintForSystem(system.code, system.path);
    return new Failure(unexpected(thrown), { code: "local_io", hint });
  }
  return new Failure(unexpected(thrown), {
    code: "internal",
    hint: "This is a fault of the command itself. BERTH_DEBUG=1 shows where.",
  });
}

function unexpected(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  return process.env.BERTH_DEBUG === "1" ? (thrown.stack ?? thrown.message) : thrown.message;
}

/** This machine refused something: no fault of the command. */
function systemError(thrown: unknown): { code: string; path: string | undefined } | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const { code, syscall, path } = thrown as NodeJS.ErrnoException;
  return syscall === undefined || code === undefined ? undefined : { code, path };
}
