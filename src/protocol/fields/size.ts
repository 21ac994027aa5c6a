/** The sizes that an installation may configure, and what each requires of the platform or of the jail. */
import { z } from "zod";
import { BerthError } from "../errors.ts";
import { limits } from "../limits.ts";
import { parseEntries } from "./entries.ts";

const sizeNamePattern = /^[a-z0-9][a-z0-9._-]{0,63}$/;
export const sizeNameSchema = z.string().regex(sizeNamePattern);

const MiB = 1024 * 1024;
const instances = [
  "lite",
  "basic",
  "standard-1",
  "standard-2",
  "standard-3",
  "standard-4",
] as const;

/** What the platform documents for instances of one's own. */
const custom = {
  vcpuMax: 4,
  memoryMibPerVcpu: 3072,
  memoryMibMax: 12_288,
  diskMbMax: 20_000,
} as const;

const sizeSettings = z.strictObject({
  instance: z
    .union([
      z.enum(instances),
      z.string().regex(/^\d+\/\d+\/\d+$/, "must be one of the platform's, or vcpu/MiB/MB of one"),
    ])
    .optional(),
  memoryMib: z.coerce
    .number()
    .int()
    .min(limits.jailMemoryBytesMin / MiB)
    .optional(),
  processes: z.coerce
    .number()
    .int()
    .min(limits.jailProcessesMin)
    .max(limits.jailProcessesMax)
    .optional(),
});

const sizeSettingNames = Object.keys(sizeSettings.shape);

const sizeSettingsSchema = sizeSettings.refine(
  (it) => Object.keys(it).length > 0,
  "must set instance, memoryMib or processes",
);

/** As configured when the sandbox was created; later changes of the configuration do not apply to it. */
export type Size = {
  name: string;
  /** The instance type that the platform starts. */
  instance?: (typeof instances)[number] | { vcpu: number; memoryMib: number; diskMb: number };
  /** Limits of the jail on one machine; the platform does not use them. */
  memoryBytes?: number;
  processes?: number;
};

/** `small:instance=basic,memoryMib=512,processes=256 large:…`. */
export function parseSizes(text: string): ReadonlyMap<string, Size> {
  const form = { name: sizeNamePattern, what: "a name", names: sizeSettingNames };
  const sizes = new Map<string, Size>();
  for (const [name, { instance, memoryMib, processes }] of parseEntries(
    text,
    form,
    sizeSettingsSchema,
  )) {
    sizes.set(name, {
      name,
      ...(instance === undefined ? {} : { instance: parseInstance(instance) }),
      ...(memoryMib === undefined ? {} : { memoryBytes: memoryMib * MiB }),
      ...(processes === undefined ? {} : { processes }),
    });
  }
  return sizes;
}

/** The installation cannot enforce this size. */
export function sizeError(name: string, why: string): BerthError {
  return new BerthError("unsupported", `size: ${name} ${why}.`, {
    hint: "Choose another size, or leave it out; BERTH_SIZES defines the sizes.",
    facts: { field: "size" },
  });
}

function parseInstance(text: string): NonNullable<Size["instance"]> {
  const instance = instances.find((name) => name === text);
  if (instance !== undefined) return instance;
  const [vcpu = 0, memoryMib = 0, diskMb = 0] = text.split("/").map(Number);
  const { vcpuMax, memoryMibMax, memoryMibPerVcpu, diskMbMax } = custom;
  if (vcpu < 1 || vcpu > vcpuMax) throw new Error(`instance ${text}: vcpu must be 1 to ${vcpuMax}`);
  if (memoryMib < memoryMibPerVcpu * vcpu || memoryMib > memoryMibMax) {
    const least = memoryMibPerVcpu * vcpu;
    throw new Error(`instance ${text}: memory must be ${least} to ${memoryMibMax} MiB`);
  }
  if (diskMb < 1 || diskMb > diskMbMax)
    throw new Error(`instance ${text}: disk must be 1 to ${diskMbMax} MB`);
  return { vcpu, memoryMib, diskMb };
}
