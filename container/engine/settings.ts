/** Reads the engine's settings from its environment once. An error names the variable and the remedy. */
import { readFileSync } from "node:fs";
import { z } from "zod";
import { limits } from "../../src/protocol/limits.ts";

const MiB = 1024 * 1024;

const integer = z.coerce.number().int();

const networkModes = ["none", "nat", "pasta", "host"] as const;

const variables = z.object({
  BERTH_ENGINE_SECRET: z.string().min(32, "must be at least 32 characters"),
  BERTH_ENGINE_DATA: z.string().regex(/^\/[^\0]+$/, "must be an absolute path"),
  BERTH_ENGINE_PORT: integer.min(0).max(65535).default(0),
  BERTH_ENGINE_AGENT: z
    .string()
    .regex(/^\//, "must be an absolute path")
    .default(`${import.meta.dir.replace(/\/container\/engine$/, "")}/dist/berth-agent`),
  BERTH_ENGINE_CONTAINERS_MAX: integer.min(1).max(10_000).optional(),
  BERTH_ENGINE_MEMORY_MAX: integer.min(limits.jailMemoryBytesMin).default(2048 * MiB),
  BERTH_ENGINE_DISK_FREE_MIN: integer.min(0).optional(),
  BERTH_ENGINE_PROCESS_RECORD: z.string().optional(),
  BERTH_ENGINE_PROCESSES_MAX: integer
    .min(limits.jailProcessesMin)
    .max(limits.jailProcessesMax)
    .default(1024),
  BERTH_ENGINE_REGISTRIES: z.string().default(""),
  BERTH_ENGINE_REGISTRY_AUTH: z.string().regex(/^\//, "must be an absolute path").optional(),
  BERTH_ENGINE_IMAGE_BYTES_MAX: integer.min(MiB).default(limits.imageBytesMax),
  BERTH_ENGINE_NETWORK: z.enum(networkModes).optional(),
  BERTH_ENGINE_SUBNET: z
    .string()
    .regex(/^\d{1,3}(\.\d{1,3}){3}\/(1[2-9]|2[0-8])$/, "must be like 10.201.0.0/16, of /12 to /28")
    .default("10.201.0.0/16"),
});

export type NetworkMode = (typeof networkModes)[number];

export type Settings = ReturnType<typeof readSettings>;

/** Removes the secret from the environment, so that no process started by the engine can read it. */
export function readSettings(env: Record<string, string | undefined>) {
  const read = variables.safeParse(env);
  delete env.BERTH_ENGINE_SECRET;
  if (!read.success) {
    const [issue] = read.error.issues;
    throw new Error(
      `${issue?.path.join(".") ?? "environment"}: ${issue?.message ?? "is not valid"}`,
    );
  }
  const { data } = read;
  return {
    secret: data.BERTH_ENGINE_SECRET,
    data: data.BERTH_ENGINE_DATA.replace(/(?<=.)\/+$/, ""),
    port: data.BERTH_ENGINE_PORT,
    agent: data.BERTH_ENGINE_AGENT,
    containersMax: containersMax(data.BERTH_ENGINE_CONTAINERS_MAX),
    memoryBytesMax: data.BERTH_ENGINE_MEMORY_MAX,
    diskFreeBytesMin: data.BERTH_ENGINE_DISK_FREE_MIN,
    processRecord: data.BERTH_ENGINE_PROCESS_RECORD,
    processesMax: data.BERTH_ENGINE_PROCESSES_MAX,
    images: {
      /** Registries that are reached without TLS. */
      plainHosts: new Set(data.BERTH_ENGINE_REGISTRIES.split(/[\s,]+/).filter(Boolean)),
      authFile: data.BERTH_ENGINE_REGISTRY_AUTH,
      imageBytesMax: data.BERTH_ENGINE_IMAGE_BYTES_MAX,
    },
    network: data.BERTH_ENGINE_NETWORK,
    subnet: data.BERTH_ENGINE_SUBNET,
  };
}

const containersDefaultMax = 1000;
/** stdin, stdout, stderr and the handle of one process, and one connection that waits for its exit. */
const descriptorsEach = 5;
const descriptorsOwn = 128;

function containersMax(requested: number | undefined): number {
  const possible = Math.floor((descriptorLimit() - descriptorsOwn) / descriptorsEach);
  if (requested === undefined) return Math.max(1, Math.min(containersDefaultMax, possible));
  if (requested <= possible) return requested;
  throw new Error(
    `BERTH_ENGINE_CONTAINERS_MAX: ${requested} needs ${requested * descriptorsEach + descriptorsOwn} open files, ` +
      `but the limit is ${descriptorLimit()}. Raise it (\`ulimit -n\`) or set at most ${possible}.`,
  );
}

function descriptorLimit(): number {
  const line = /^Max open files\s+(\S+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
  const limit = Number(line);
  return Number.isInteger(limit) ? limit : 1_000_000;
}
