/**
 * Owns the call that clones: gated work of its own, told as a stream that ends it when its reader goes away.
 * Loaded when the first one comes. Does not own the clone (clone.ts).
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { inTurn, type Turn } from "../files/gated-write.ts";
import { baseOf, type Sessions } from "../files/sessions.ts";
import type { Ground } from "../sandbox.ts";
import { readJson } from "../server/body.ts";
import type { PartCall } from "../server/module.ts";
import { clone } from "./clone.ts";
import { CloneEvents } from "./events.ts";
import { readCloneCall } from "./read.ts";

export class GitRoutes {
  readonly #ground: Ground;
  readonly #sessions: () => Sessions | undefined;

  constructor(ground: Ground, sessions: () => Sessions | undefined) {
    this.#ground = ground;
    this.#sessions = sessions;
  }

  answer(call: PartCall): Promise<Response> {
    if (call.rest.join("/") !== "clone") {
      throw new BerthError("not_found", `the agent has no route ${call.url.pathname}`);
    }
    if (call.request.method !== "POST") {
      throw new BerthError("method_not_allowed", "use POST", { facts: { allow: ["POST"] } });
    }
    return this.#clone(call);
  }

  /** Answers when git runs, or when it is known that it will not. */
  #clone({ request, requestId }: PartCall): Promise<Response> {
    return new Promise((resolve, reject) => {
      const left = new AbortController();
      let events: CloneEvents | undefined;
      const begun = () => {
        events = new CloneEvents();
        const headers = { "content-type": "text/event-stream", "cache-control": "no-store" };
        resolve(
          new Response(
            events.stream(() => left.abort(readerGone())),
            { headers },
          ),
        );
        return events;
      };
      inTurn(this.#ground.gated, request, async (turn) => {
        const asked = readCloneCall(await readJson(request));
        const base = baseOf(asked.session, this.#ground.place, this.#sessions());
        const around = { ground: this.#ground, base, turn: endedBy(left.signal, turn), begun };
        return clone(asked, around);
      }).then(
        (cloned) => events?.done(cloned),
        (error) => (events === undefined ? reject(error) : events.failed(error, requestId)),
      );
    });
  }
}

function endedBy(left: AbortSignal, turn: Turn): Turn {
  return {
    signal: AbortSignal.any([turn.signal, left]),
    pass() {
      left.throwIfAborted();
      turn.pass();
    },
  };
}

function readerGone(): BerthError {
  return new BerthError("operation_interrupted", "the caller went away; nothing was cloned", {
    facts: { admitted: true, reason: "caller_gone" },
  });
}
