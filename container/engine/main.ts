/**
 * Owns the engine as a program: settings in, one line `{"port":N}` out, everything ended when it is told to
 * or when its stdin ends. Does not own the engine's parts.
 */

import { closeEngine, makeEngine } from "./engine.ts";
import { log, messageOf } from "./log.ts";
import { Containers } from "./sandbox/containers.ts";
import { serve } from "./server.ts";
import { readSettings } from "./settings.ts";

/** Longer than ending a full house takes; whoever waits for the engine's own end has a limit above this. */
const closeTimeoutMs = 20_000;

async function main(): Promise<void> {
  const engine = await makeEngine(readSettings(process.env));
  const containers = new Containers(engine);
  const server = serve(engine, containers);
  process.stdout.write(`${JSON.stringify({ port: server.port })}\n`);
  await toldToEnd();
  // What is not gone by then dies with the pipe that this process holds.
  setTimeout(() => process.exit(1), closeTimeoutMs);
  await containers.close();
  await server.stop(true);
  await closeEngine(engine);
  process.exit(0);
}

function toldToEnd(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const)
      process.on(signal, () => resolve());
    process.stdin.on("end", resolve).on("error", resolve).resume();
  });
}

main().catch((error: unknown) => {
  log("engine_failed", { why: messageOf(error) });
  process.exit(1);
});
