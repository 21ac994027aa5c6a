/** Opens the pipes of one command, all or none, and describes the errors of missing resources. See pipe.ts for reading. */
import { closeSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { openPipe } from "../../engine/jail/descriptors.ts";
import { hasCode } from "./error-codes.ts";

type PipeEnds = [read: number, write: number];

/** Opens one pipe for each name. */
export function openPipes<Name extends string>(names: readonly Name[]): Record<Name, PipeEnds> {
  const opened: [Name, PipeEnds][] = [];
  try {
    for (const name of names) opened.push([name, openPipe()]);
    return Object.fromEntries(opened) as Record<Name, PipeEnds>;
  } catch (error) {
    for (const [, ends] of opened) for (const fd of ends) closeSync(fd);
    throw resourcesUnavailable(error);
  }
}

export function resourcesUnavailable(error: unknown): BerthError {
  console.error("resources of a command could not be created:", error);
  return new BerthError(
    "unavailable",
    "Resources that the command needs could not be created. It was not run.",
    {
      hint: "The container may be out of processes, descriptors, memory or disk space.",
    },
  );
}

/** Errors of a spawn that are about missing resources, not about the program. */
const resourceErrors = ["EAGAIN", "ENOMEM", "EMFILE", "ENFILE"];

/** The error to throw when a spawn failed with `error`. */
export function spawnFailure(error: unknown): unknown {
  return hasCode(error, ...resourceErrors) ? resourcesUnavailable(error) : error;
}
