/** Clones with a real agent, and checks each event of the stream against its schema. */
import { errorBodySchema } from "../../../src/protocol/errors.ts";
import { type CloneInput, clonedSchema, cloneProgressSchema } from "../../../src/protocol/file.ts";
import type { Agent } from "../agent.ts";
import { completeCall } from "../checked-call.ts";

export type CloneOutcome = {
  status: number;
  progress: { phase: string; percent: number | null }[];
  comments: number;
  done?: { dir: string; commit: string | null; branch: string | null };
  error?: Record<string, unknown> & { code: string; message: string };
};

export async function clone(
  agent: Pick<Agent, "request">,
  call: CloneInput | Record<string, unknown>,
  init: RequestInit = {},
): Promise<CloneOutcome> {
  const response = await agent.request("/v1/git/clone", {
    ...{ method: "POST", body: completeCall("/v1/git/clone", JSON.stringify(call)) },
    ...init,
  });
  const outcome: CloneOutcome = { status: response.status, progress: [], comments: 0 };
  if (response.status !== 200) {
    outcome.error = errorBodySchema.parse(await response.json()).error;
    return outcome;
  }
  let text = "";
  for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) {
    const events = (text + Buffer.from(piece).toString()).split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) take(outcome, event);
  }
  return outcome;
}

function take(outcome: CloneOutcome, event: string): void {
  const [, name = "", data = ""] = /^event: (\w+)\ndata: (.*)$/.exec(event) ?? [];
  switch (name) {
    case "":
      outcome.comments += 1;
      break;
    case "progress":
      outcome.progress.push(cloneProgressSchema.parse(JSON.parse(data)));
      break;
    case "done":
      outcome.done = clonedSchema.parse(JSON.parse(data));
      break;
    case "error":
      outcome.error = errorBodySchema.parse(JSON.parse(data)).error;
      break;
    default:
      throw new Error(`an event that is not known: ${event}`);
  }
}
