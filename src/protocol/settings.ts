/** Schemas of the settings of a sandbox that can be changed at any time. core/sandbox/settings.ts applies a change. */
import { z } from "zod";
import { component } from "./fields/component.ts";
import { envNameSchema, kernelText } from "./fields/env.ts";
import {
  checkpointEverySchema,
  destroyPausedAfterSchema,
  idleTimeoutSchema,
  keepCheckpointsSchema,
  maxLifetimeSchema,
} from "./fields/life.ts";
import { limits } from "./limits.ts";
import { networkSchema, onIdleSchema, wakeSchema } from "./sandbox.ts";
import { serviceCallSchema, serviceCallsSchema } from "./service.ts";

export const settingsPatchSchema = component("SettingsPatch", {
  ifVersion: z.int().min(0).optional().describe("Changes this version only; otherwise 412."),
  idleTimeoutMs: idleTimeoutSchema.optional(),
  onIdle: onIdleSchema.optional(),
  maxLifetimeMs: maxLifetimeSchema.nullable().optional(),
  env: z
    .record(envNameSchema, kernelText(limits.envValueBytesMax).nullable())
    .optional()
    .describe("Sets variables, and removes those that are null; others stay."),
  wake: wakeSchema.optional(),
  network: networkSchema.optional().describe("From the next start on."),
  destroyPausedAfterMs: destroyPausedAfterSchema.nullable().optional(),
  checkpointEveryMs: checkpointEverySchema.nullable().optional(),
  keepCheckpoints: keepCheckpointsSchema.nullable().optional(),
  services: serviceCallsSchema.optional().describe("Replaces all services."),
});

export const settingsSchema = component("Settings", {
  version: z.int().describe("Grows with each change; `ifVersion` compares it."),
  idleTimeoutMs: z.int(),
  onIdle: onIdleSchema,
  maxLifetimeMs: z.int().nullable(),
  envNames: z.array(z.string()).describe("The values are not shown."),
  wake: wakeSchema,
  network: networkSchema,
  destroyPausedAfterMs: z.int().nullable(),
  checkpointEveryMs: z.int().nullable(),
  keepCheckpoints: z.int().nullable(),
  services: z.array(serviceCallSchema),
  atNextStart: z
    .array(z.enum(["env", "services", "network"]))
    .optional()
    .describe("Changed now, but in effect only from the next start on: pause and start to apply."),
  listed: z.literal(false).optional().describe("The lists do not show this change yet."),
});

export type SettingsPatch = z.infer<typeof settingsPatchSchema>;
export type Settings = z.infer<typeof settingsSchema>;
