/** Settings of how long a sandbox and its checkpoints last. */
import { limits } from "../limits.ts";
import { wholeNumber } from "./scalar.ts";

export const idleTimeoutSchema = wholeNumber(
  limits.idleTimeoutMinMs,
  limits.idleTimeoutMaxMs,
).describe("Milliseconds without work until `onIdle` happens.");

export const maxLifetimeSchema = wholeNumber(
  limits.maxLifetimeMinMs,
  limits.maxLifetimeMaxMs,
).describe(
  "Milliseconds from its creation until the sandbox is destroyed, whatever it does; none by default.",
);

export const destroyPausedAfterSchema = wholeNumber(
  limits.destroyPausedMinMs,
  limits.maxLifetimeMaxMs,
).describe("Milliseconds after which a paused sandbox is destroyed; never by default.");

export const checkpointEverySchema = wholeNumber(
  limits.checkpointEveryMinMs,
  limits.checkpointEveryMaxMs,
).describe(
  "Milliseconds after which a running sandbox saves a checkpoint by itself. By default never, or where files do not outlive their container, every 30 minutes.",
);

export const keepCheckpointsSchema = wholeNumber(1, limits.checkpointsMax).describe(
  "How many checkpoints are kept: a new one removes the oldest. By default all, and one beyond the limit is refused.",
);
