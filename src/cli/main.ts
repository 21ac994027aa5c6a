/**
 * Owns the process of the command `berth`: its arguments, streams and exit code.
 * Does not own what a command does: commands.ts lists them.
 */
import { setMaxListeners } from "node:events";
import { runProgram } from "./program.ts";

/** What a command left open keeps the process for no longer than this. */
const lingerMs = 1000;

// One signal may end any number of gits and calls at once: Node 20 would warn of the eleventh on the person's screen.
setMaxListeners(0);

// Through npm the process stands in the package; the person stands elsewhere.
const { INIT_CWD, npm_lifecycle_event } = process.env;
if (npm_lifecycle_event === "berth" && INIT_CWD !== undefined) process.chdir(INIT_CWD);

// Whoever read the output has gone (`berth list | head -1`): there is nobody left to tell.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (isLookedAfter(process.stdout)) return;
  if (error.code === "EPIPE") process.exit(process.exitCode ?? 0);
  process.stderr.write(`error: the output could not be written: ${error.message}\n`);
  process.exit(1);
});
process.stderr.on("error", () => {
  if (!isLookedAfter(process.stderr)) process.exit(process.exitCode ?? 1);
});

process.exitCode = await runProgram(process.argv.slice(2), process);
// However slow its reader is: what waits to be written is a part of the result.
await Promise.all([written(process.stdout), written(process.stderr)]);
setTimeout(() => process.exit(), lingerMs).unref();

/** By a command that has more to bring to an end than itself (live/interrupts.ts). */
function isLookedAfter(stream: NodeJS.WriteStream): boolean {
  return stream.listenerCount("error") > 1;
}

/** Also where it never will be, because its reader has gone. */
function written(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.writableLength === 0) return Promise.resolve();
  return new Promise((resolve) => stream.write("", () => resolve()));
}
