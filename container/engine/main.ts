/**
 * The engine as a program: reads settings, prints one line `{"port":N}`, and ends everything on a signal or when
 * stdin closes.
 */

import { closeEngine, makeEngine } from "./engine.ts";
import { log, messageOf } from "./log.ts";
import { Containers } from "./sandbox/containers.ts";
import { serve } from "./server.ts";
import { readSettings } from "./settings.ts";

/** Longer than ending the maximum number of containers takes. A parent that waits for the engine needs a higher limit. */
const closeTimeoutMs = 20_000;

async function main(): Promise<void> {
  const engine = await makeEngine(readSettings(process.env));
  const containers = new Containers(engine);
  containers.disk.begin();
  const server = serve(engine, containers);
  process.stdout.write(`${JSON.stringify({ port: server.port })}\n`);
  await waitForShutdown();
  // Agents that are left after that end when this process closes their pipe.
  setTimeout(() => process.exit(1), closeTimeoutMs);
  containers.disk.end();
  await containers.close();
  await server.stop(true);
  await closeEngine(engine);
  process.exit(0);
}

function waitForShutdown(): Promise<void> {
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
