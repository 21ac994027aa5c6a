/**
 * Runs the launcher's programs and prints their progress and failures, one line each, on stderr. stdout is reserved
 * for the address of a ready server.
 */
import { realpathSync } from "node:fs";
import { pathToFileURL } from "node:url";

/** A failure that the user can act on: its message is printed without a stack, and the program exits with 1. */
export class UserError extends Error {}

/** @param {string} line */
export function printStatus(line) {
  process.stderr.write(`berth: ${line}\n`);
}

/**
 * Runs a whole program. A UserError is printed as one line; any other error is a bug and keeps its stack.
 * @param {() => Promise<number | void>} program
 */
export async function runProgram(program) {
  try {
    process.exitCode = (await program()) ?? 0;
  } catch (thrown) {
    if (thrown instanceof UserError) printStatus(thrown.message);
    else process.stderr.write(`${thrown instanceof Error ? thrown.stack : thrown}\n`);
    process.exitCode = 1;
  }
}

/**
 * Whether this module is run as a program, not imported.
 * @param {string} moduleUrl
 */
export function isMainModule(moduleUrl) {
  return (
    process.argv[1] !== undefined && moduleUrl === pathToFileURL(realpathSync(process.argv[1])).href
  );
}
