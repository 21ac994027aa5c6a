/** Schemas of metrics: what a sandbox uses, measured in its container. */
import { z } from "zod";
import { component } from "./fields/component.ts";
import { queryNumber } from "./fields/scalar.ts";
import { limits } from "./limits.ts";

export const metricsQuerySchema = z.strictObject({
  last: queryNumber(1, limits.metricsMax)
    .prefault(limits.metricsMax)
    .describe("Only the newest so many."),
});

const bytes = z.int().min(0);

export const metricSchema = component("Metric", {
  at: z.iso.datetime().describe("ISO 8601."),
  processors: z
    .number()
    .describe("In use on average since the measurement before; 1.5 is one and a half."),
  processorMs: z.int().describe("Processor time used since the container started."),
  memoryBytes: bytes.describe("Without the cache of files that the kernel can drop."),
  processes: z.int().describe("Without the agent."),
  diskBytes: bytes.describe(
    "Used of the file system with the workspace, which sandboxes of one machine may share.",
  ),
  network: z
    .strictObject({ receivedBytes: bytes, sentBytes: bytes })
    .optional()
    .describe("Since the container started; left out where the sandbox has no network of its own."),
});

export const metricsSchema = component("Metrics", {
  metrics: z.array(metricSchema).describe("The oldest first."),
  limits: z
    .strictObject({
      processors: z.number().optional(),
      memoryBytes: bytes.optional(),
      processes: z.int().optional(),
      diskBytes: bytes.optional(),
    })
    .optional()
    .describe("What the measurements are bounded by, as far as it is known."),
  nextCursor: z.null(),
});

export type Metric = z.infer<typeof metricSchema>;
export type Metrics = z.infer<typeof metricsSchema>;
export type MetricsQuery = { last?: number | undefined };
