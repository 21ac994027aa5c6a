/** Schemas of services: programs that a sandbox starts with each incarnation and restarts when they end. */
import { z } from "zod";
import {
  argvSchema,
  commandSchema,
  cwdSchema,
  eitherCommandOrArgv,
  hasCommandOrArgv,
} from "./exec.ts";
import { component } from "./fields/component.ts";
import { utf8Bytes } from "./fields/env.ts";
import { wholeNumber } from "./fields/scalar.ts";
import { limits } from "./limits.ts";
import { handleSchema } from "./process.ts";

export const restartSchema = z
  .enum(["always", "on-failure", "never"])
  .describe("Whether it is started again when it has ended, after pauses that grow.");

export const serviceCallSchema = z
  .strictObject({
    name: handleSchema.describe("Names its process too, whose log has its output."),
    command: commandSchema.optional(),
    argv: argvSchema.optional(),
    cwd: cwdSchema.optional(),
    port: wholeNumber(1, 65_535)
      .optional()
      .describe("It is ready, and the next one starts, when something listens there."),
    restart: restartSchema.default("always"),
  })
  .refine(hasCommandOrArgv, eitherCommandOrArgv)
  .meta({ id: "ServiceCall" });

export const serviceCallsSchema = z
  .array(serviceCallSchema)
  .max(limits.servicesMax)
  .refine((services) => new Set(services.map(({ name }) => name)).size === services.length, {
    message: "must have different names",
  })
  .refine((services) => utf8Bytes(JSON.stringify(services)) <= limits.servicesBytesMax, {
    message: `must be at most ${limits.servicesBytesMax} bytes as JSON, all of them together`,
  })
  .describe(
    "Started in this order with each incarnation. They do not keep the sandbox from idling.",
  );

export const serviceSchema = component("Service", {
  name: handleSchema,
  state: z
    .enum(["waiting", "starting", "running", "pausing", "ended"])
    .describe(
      "`waiting` for those before it; `starting` until its port listens; `pausing` before a restart.",
    ),
  port: z.int().optional(),
  restart: restartSchema,
  restarts: z.int().describe("How often it was started again in this incarnation."),
  process: handleSchema.optional().describe("Its newest process."),
  problem: z.string().optional().describe("Why its newest start failed."),
  exitCode: z.int().nullable().optional().describe("Of its last end."),
});

export const servicesSchema = component("Services", {
  services: z.array(serviceSchema),
  nextCursor: z.null(),
});

export type ServiceCall = z.infer<typeof serviceCallSchema>;
export type Service = z.infer<typeof serviceSchema>;
export type Services = z.infer<typeof servicesSchema>;
