/**
 * Owns passing on an answer of the agent that is JSON and may come late: whole where it is short, as a stream else.
 * Does not own streams of output, which pass without being read.
 */

import type { Life } from "../../../core/sandbox/record.ts";
import { errorBodySchema } from "../../../protocol/errors.ts";
import { limits } from "../../../protocol/limits.ts";
import { parsedJson } from "../../../runtime/short-response.ts";
import type { Reply } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";
import { interrupted } from "./agent-request.ts";
import { guarded, whole } from "./guarded-body.ts";

export type Coming = {
  life: Life;
  requestId: string;
  /** Its end, told once: what came whole has ended; what is under way counts until its last byte. */
  done: () => void;
  /** Its reader went away before the end. */
  leave: () => void;
};

/** An agent may say anything: what is told as its answer is an object, and a refusal is one of the table. */
function isAnswer(status: number, json: string): boolean {
  const body = parsedJson(json);
  if (typeof body !== "object" || body === null) return false;
  return status < 400 || errorBodySchema.safeParse(body).success;
}

export async function passOn(
  actor: SandboxActor,
  response: Response,
  { life, requestId, done, leave }: Coming,
): Promise<Reply> {
  const { status, headers } = response;
  const type = { "content-type": "application/json" };
  const length = headers.get("content-length");
  if (length !== null && Number(length) <= limits.answerWholeBytesMax) {
    const json = await whole(response, actor.reach.timer);
    return passOnShort(actor, { status, json }, { life, done });
  }
  if (length !== null) {
    done();
    return new Response(response.body, { status, headers: { ...type, "content-length": length } });
  }
  const cut = () => interrupted(actor, life, true);
  const body = guarded(response, requestId, actor.reach.timer, cut, done, leave);
  return new Response(body, { status, headers: type });
}

/** Without `json` it broke off, or is longer than it said. */
export async function passOnShort(
  actor: SandboxActor,
  { status, json }: { status: number; json: string | undefined },
  { life, done }: Pick<Coming, "life" | "done">,
): Promise<Reply> {
  if (json === undefined || !isAnswer(status, json)) throw await interrupted(actor, life, true);
  done();
  return { status, json };
}
