/**
 * Handles the call that clones a repository: gated work with a stream of progress, ended when the reader disconnects.
 * Loaded with the first call.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { CloneCall } from "../../../src/protocol/git.ts";
import { type GatedWrite, runGatedWrite } from "../files/gated-write.ts";
import { baseOf, type Sessions } from "../files/sessions.ts";
import type { SandboxDeps } from "../sandbox-deps.ts";
import { readJson } from "../server/body.ts";
import type { ModuleRequest } from "../server/module.ts";
import { clone } from "./clone.ts";
import { CloneEvents } from "./events.ts";

export class GitRoutes {
  readonly #deps: SandboxDeps;
  readonly #sessions: () => Sessions | undefined;

  constructor(deps: SandboxDeps, sessions: () => Sessions | undefined) {
    this.#deps = deps;
    this.#sessions = sessions;
  }

  handle(call: ModuleRequest): Promise<Response> {
    if (call.rest.join("/") !== "clone") {
      throw new BerthError("not_found", `The agent has no route ${call.url.pathname}.`);
    }
    if (call.request.method !== "POST") {
      throw new BerthError("method_not_allowed", "Use POST.", { facts: { allow: ["POST"] } });
    }
    return this.#clone(call);
  }

  /** Responds when git runs, or when it is certain that it will not. */
  #clone({ request, requestId }: ModuleRequest): Promise<Response> {
    return new Promise((resolve, reject) => {
      const reader = new AbortController();
      let events: CloneEvents | undefined;
      const onStarted = () => {
        events = new CloneEvents();
        const headers = { "content-type": "text/event-stream", "cache-control": "no-store" };
        resolve(
          new Response(
            events.stream(() => reader.abort(readerGone())),
            { headers },
          ),
        );
        return events;
      };
      runGatedWrite(this.#deps.gated, request, async (turn) => {
        const cloneCall = await readJson<CloneCall>(request);
        const base = baseOf(cloneCall.session, this.#deps.sandboxEnv, this.#sessions());
        const write = alsoEndedBy(reader.signal, turn);
        return clone(cloneCall, { deps: this.#deps, base, write, onStarted });
      }).then(
        (cloned) => events?.done(cloned),
        (error) => (events === undefined ? reject(error) : events.failed(error, requestId)),
      );
    });
  }
}

function alsoEndedBy(reader: AbortSignal, turn: GatedWrite): GatedWrite {
  return {
    signal: AbortSignal.any([turn.signal, reader]),
    throwIfEnded() {
      reader.throwIfAborted();
      turn.throwIfEnded();
    },
  };
}

function readerGone(): BerthError {
  return new BerthError("operation_interrupted", "The caller disconnected. Nothing was cloned.", {
    facts: { admitted: true, reason: "caller_gone" },
  });
}
