/** Completes a call as the object does before it reaches the agent: checked by its schema, with all defaults. */
import type { z } from "zod";
import { cloneCallSchema, mkdirCallSchema, moveCallSchema } from "../../src/protocol/file.ts";
import {
  agentExecCallSchema,
  agentProcessCallSchema,
  agentSessionCallSchema,
  agentSessionExecCallSchema,
  agentTerminalCallSchema,
} from "../../src/protocol/internal/agent.ts";
import { signalCallSchema } from "../../src/protocol/process.ts";

const schemas: [path: RegExp, schema: z.ZodType][] = [
  [/^\/v1\/exec$/, agentExecCallSchema],
  [/^\/v1\/sessions$/, agentSessionCallSchema],
  [/^\/v1\/sessions\/[\w-]+\/exec$/, agentSessionExecCallSchema],
  [/^\/v1\/(sessions\/[\w-]+\/)?processes$/, agentProcessCallSchema],
  [/^\/v1\/processes\/[\w-]+\/signal$/, signalCallSchema],
  [/^\/v1\/terminals$/, agentTerminalCallSchema],
  [/^\/v1\/files\/mkdir$/, mkdirCallSchema],
  [/^\/v1\/files\/move$/, moveCallSchema],
  [/^\/v1\/git\/clone$/, cloneCallSchema],
];

/** A body that the schema refuses, or for which there is none, stays as it is. */
export function completeCall(path: string, body: string): string {
  const schema = schemas.find(([pattern]) => pattern.test(path))?.[1];
  if (schema === undefined || !body.startsWith('{"')) return body;
  const checked = schema.safeParse(JSON.parse(body));
  return checked.success ? JSON.stringify(checked.data) : body;
}
