/**
 * Owns what the engine is told by its environment, read once; an error names the variable and the remedy.
 * Does not own what the machine can give (machine.ts).
 */
import { readFileSync } from "node:fs";
import { z } from "zod";
import { limits } from "../../src/protocol/limits.ts";

const MiB = 1024 * 1024;

const whole = z.coerce.number().int();

const networkModes = ["none", "nat", "pasta", "host"] as const;

const variables = z.object({
  BERTH_ENGINE_SECRET: z.string().min(32, "must be at least 32 characters"),
  BERTH_ENGINE_DATA: z.string().regex(/^\/[^\0]+$/, "must be an absolute path"),
  BERTH_ENGINE_PORT: whole.min(0).max(65535).default(0),
  BERTH_ENGINE_AGENT: z
    .string()
    .regex(/^\//, "must be an absolute path")
    .default(`${import.meta.dir.replace(/\/container\/engine$/, "")}/dist/berth-agent`),
  BERTH_ENGINE_CONTAINERS_MAX: whole.min(1).max(10_000).optional(),
  BERTH_ENGINE_MEMORY_MAX: whole.min(limits.roomMemoryBytesMin).default(2048 * MiB),
  BERTH_ENGINE_PROCESSES_MAX: whole
    .min(limits.roomProcessesMin)
    .max(limits.roomProcessesMax)
    .default(1024),
  BERTH_ENGINE_NETWORK: z.enum(networkModes).optional(),
  BERTH_ENGINE_SUBNET: z
    .string()
    .regex(/^\d{1,3}(\.\d{1,3}){3}\/(1[2-9]|2[0-8])$/, "must be like 10.201.0.0/16, of /12 to /28")
    .default("10.201.0.0/16"),
});

export type NetworkMode = (typeof networkModes)[number];

export type Settings = {
  secret: string;
  data: string;
  port: number;
  agent: string;
  containersMax: number;
  memoryBytesMax: number;
  processesMax: number;
  network: NetworkMode | undefined;
  subnet: string;
};

/** Takes the secret out of the environment: nothing that the engine starts may find it there. */
export function readSettings(env: Record<string, string | undefined>): Settings {
  const read = variables.safeParse(env);
  delete env.BERTH_ENGINE_SECRET;
  if (!read.success) {
    const [issue] = read.error.issues;
    throw new Error(
      `${issue?.path.join(".") ?? "environment"}: ${issue?.message ?? "is not valid"}`,
    );
  }
  const it = read.data;
  return {
    secret: it.BERTH_ENGINE_SECRET,
    data: it.BERTH_ENGINE_DATA.replace(/(?<=.)\/+$/, ""),
    port: it.BERTH_ENGINE_PORT,
    agent: it.BERTH_ENGINE_AGENT,
    containersMax: containersMax(it.BERTH_ENGINE_CONTAINERS_MAX),
    memoryBytesMax: it.BERTH_ENGINE_MEMORY_MAX,
    processesMax: it.BERTH_ENGINE_PROCESSES_MAX,
    network: it.BERTH_ENGINE_NETWORK,
    subnet: it.BERTH_ENGINE_SUBNET,
  };
}

const containersDefaultMax = 1000;
/** stdin, stdout, stderr and the handle of one process, and one connection that waits for its end. */
const descriptorsEach = 5;
const descriptorsOwn = 128;

function containersMax(asked: number | undefined): number {
  const possible = Math.floor((descriptorLimit() - descriptorsOwn) / descriptorsEach);
  if (asked === undefined) return Math.max(1, Math.min(containersDefaultMax, possible));
  if (asked <= possible) return asked;
  throw new Error(
    `BERTH_ENGINE_CONTAINERS_MAX: ${asked} needs ${asked * descriptorsEach + descriptorsOwn} open files, ` +
      `the limit is ${descriptorLimit()}: raise it (ulimit -n) or ask for at most ${possible}`,
  );
}

function descriptorLimit(): number {
  const line = /^Max open files\s+(\S+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
  const limit = Number(line);
  return Number.isInteger(limit) ? limit : 1_000_000;
}
