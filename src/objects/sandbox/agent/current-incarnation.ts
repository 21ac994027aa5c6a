/**
 * Owns one question to whichever life there is: where that turns out to be gone, the next one is asked, or nobody.
 * Does not own gated calls, which are meant for one life only (agent-ask.ts).
 */

import type { Life } from "../../../core/sandbox/record.ts";
import { BerthError } from "../../../protocol/errors.ts";
import { AgentSilent, callAgent } from "../../../runtime/agent-client.ts";
import type { SandboxActor } from "../actor.ts";
import type { Ask } from "./agent-request.ts";
import { runningLife } from "./handles.ts";

export type Asked = { response: Response; life: Life };

/** `lifeNow` refuses, or says that there is none: then nobody is asked. */
export async function askLife<Found extends Life | undefined>(
  actor: SandboxActor,
  lifeNow: () => Found | Promise<Found>,
  { headersMs, ...ask }: Ask,
): Promise<Asked | Extract<Found, undefined>> {
  for (;;) {
    const life = await lifeNow();
    if (life === undefined) return life as Extract<Found, undefined>;
    try {
      return { response: await callAgent(actor.reach, life, ask, headersMs), life };
    } catch (error) {
      if (!(error instanceof AgentSilent)) throw error;
    }
    await actor.link.confirm(life);
    if (runningLife(actor)?.incarnation === life.incarnation) {
      throw new BerthError("unavailable", "The sandbox does not answer.", {
        hint: "Try again in a moment.",
      });
    }
  }
}
