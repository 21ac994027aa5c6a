/**
 * Owns what the launcher says to a person: progress and failures, one line each, on stderr.
 * Does not own stdout: that is for the one line that says where Berth answers.
 */
import { realpathSync } from "node:fs";
import { pathToFileURL } from "node:url";

/** A failure that a person can act on: its message is the whole line, and the program ends with 1. */
export class Refusal extends Error {}

/** @param {string} line */
export function say(line) {
  process.stderr.write(`berth: ${line}\n`);
}

/**
 * Runs a whole program. A refusal is one line; anything else is a fault of ours and keeps its stack.
 * @param {() => Promise<number | void>} program
 */
export async function run(program) {
  try {
    process.exitCode = (await program()) ?? 0;
  } catch (thrown) {
    if (thrown instanceof Refusal) say(thrown.message);
    else process.stderr.write(`${thrown instanceof Error ? thrown.stack : thrown}\n`);
    process.exitCode = 1;
  }
}

/**
 * Whether this module is the program, and not imported by one.
 * @param {string} moduleUrl
 */
export function isProgram(moduleUrl) {
  return (
    process.argv[1] !== undefined && moduleUrl === pathToFileURL(realpathSync(process.argv[1])).href
  );
}
