/** The entry point of the command `berth`: arguments, streams and exit code. */
import { setMaxListeners } from "node:events";
import { runProgram } from "./program.ts";

/** How long the process may outlive its command, if something was left open. */
const lingerMs = 1000;

// One signal may end any number of git processes and calls; Node 20 would print a warning from the eleventh on.
setMaxListeners(0);

// npm starts the process in the package's folder; the user is in another one.
const { INIT_CWD, npm_lifecycle_event } = process.env;
if (npm_lifecycle_event === "berth" && INIT_CWD !== undefined) process.chdir(INIT_CWD);

// The reader of the output has closed it (`berth list | head -1`).
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (hasOtherListener(process.stdout)) return;
  if (error.code === "EPIPE") process.exit(process.exitCode ?? 0);
  process.stderr.write(`error: The output could not be written: ${error.message}\n`);
  process.exit(1);
});
process.stderr.on("error", () => {
  if (!hasOtherListener(process.stderr)) process.exit(process.exitCode ?? 1);
});

void main();

async function main(): Promise<void> {
  process.exitCode = await runProgram(process.argv.slice(2), process);
  // Waits for a slow reader: buffered output is part of the result.
  await Promise.all([flush(process.stdout), flush(process.stderr)]);
  setTimeout(() => process.exit(), lingerMs).unref();
}

/** A command that must finish other work first handles the error itself (interrupts.ts). */
function hasOtherListener(stream: NodeJS.WriteStream): boolean {
  return stream.listenerCount("error") > 1;
}

/** Also resolves when the reader has closed the stream. */
function flush(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.writableLength === 0) return Promise.resolve();
  return new Promise((resolve) => stream.write("", () => resolve()));
}
