/**
 * Owns making the pipes of one command: all of them, or none and an error that says so; and that error.
 * Does not own reading them (pipe.ts), nor the one descriptor that each side closes.
 */
import { closeSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { openPipe } from "./libc.ts";

type PipeEnds = [read: number, write: number];

/** One for each name. */
export function openPipes<Name extends string>(names: readonly Name[]): Record<Name, PipeEnds> {
  const made: [Name, PipeEnds][] = [];
  try {
    for (const name of names) made.push([name, openPipe()]);
    return Object.fromEntries(made) as Record<Name, PipeEnds>;
  } catch (error) {
    for (const [, ends] of made) for (const fd of ends) closeSync(fd);
    throw notMade(error);
  }
}

export function notMade(error: unknown): BerthError {
  console.error("what a command needs could not be made:", error);
  return new BerthError(
    "unavailable",
    "what the command needs to run could not be made; it was not run",
    {
      hint: "the container may be out of processes, descriptors, memory or disk space",
    },
  );
}

/** Of a birth: these say that there is no room for a process, and nothing of the program. */
const scarce = ["EAGAIN", "ENOMEM", "EMFILE", "ENFILE"];

/** What a start that failed with `error` is to throw. */
export function notBorn(error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  return code !== undefined && scarce.includes(code) ? notMade(error) : error;
}
