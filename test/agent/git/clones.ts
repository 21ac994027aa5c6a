/**
 * Owns cloning by a real agent in tests: the call, its events as they come, each held against its schema.
 */
import { errorBodySchema } from "../../../src/protocol/errors.ts";
import { type CloneInput, clonedSchema, cloneProgressSchema } from "../../../src/protocol/git.ts";
import type { Agent } from "../agent.ts";

export type Told = {
  status: number;
  progress: { phase: string; percent: number | null; atMs: number }[];
  comments: number;
  done?: { dir: string; commit: string | null; branch: string | null };
  error?: Record<string, unknown> & { code: string; message: string };
};

export async function clone(
  agent: Pick<Agent, "request">,
  call: CloneInput | Record<string, unknown>,
  init: RequestInit = {},
): Promise<Told> {
  const response = await agent.request("/v1/git/clone", {
    ...{ method: "POST", body: JSON.stringify(call) },
    ...init,
  });
  const told: Told = { status: response.status, progress: [], comments: 0 };
  if (response.status !== 200) {
    told.error = errorBodySchema.parse(await response.json()).error;
    return told;
  }
  let text = "";
  for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) {
    const events = (text + Buffer.from(piece).toString()).split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) take(told, event);
  }
  return told;
}

function take(told: Told, event: string): void {
  const [, name = "", data = ""] = /^event: (\w+)\ndata: (.*)$/.exec(event) ?? [];
  switch (name) {
    case "":
      told.comments += 1;
      break;
    case "progress":
      told.progress.push({
        ...cloneProgressSchema.parse(JSON.parse(data)),
        atMs: performance.now(),
      });
      break;
    case "done":
      told.done = clonedSchema.parse(JSON.parse(data));
      break;
    case "error":
      told.error = errorBodySchema.parse(JSON.parse(data)).error;
      break;
    default:
      throw new Error(`an event that is not known: ${event}`);
  }
}
