/**
 * The schema of `.berth/sandbox.json` and `.toml`: how a checkout wants its sandbox created.
 */
import { z } from "zod";
import { portNumberSchema } from "../../protocol/port.ts";
import { createCallSchema } from "../../protocol/sandbox.ts";

const { image, size, env, cwd, network, idleTimeoutMs, onIdle, maxLifetimeMs } =
  createCallSchema.shape;

const setupCommandsMax = 64;
const portsMax = 32;

export const configSchema = z.strictObject({
  image,
  size,
  cwd,
  env: env.unwrap().optional(),
  network: network.unwrap().optional(),
  idleTimeoutMs: idleTimeoutMs.unwrap().optional(),
  onIdle: onIdle.unwrap().optional(),
  maxLifetimeMs,
  /** Commands run once, in order, on the checkout's files, before the sandbox is used. */
  setup: z.array(z.string().min(1)).max(setupCommandsMax).optional(),
  /** The ports that `berth open` opens. */
  ports: z.array(portNumberSchema).max(portsMax).optional(),
});

export type Config = z.infer<typeof configSchema>;
