/** Handles the call that clones a repository: gated work with a stream of progress, ended when the reader disconnects. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { CloneCall } from "../../../src/protocol/file.ts";
import { type GatedWrite, runGatedWrite } from "../files/gated-write.ts";
import type { BaseOf } from "../files/paths.ts";
import type { SandboxDeps } from "../sandbox-deps.ts";
import { readJson } from "../server/body.ts";
import type { ModuleRequest, RouteTable } from "../server/module.ts";
import { clone } from "./clone.ts";
import { CloneEvents } from "./progress.ts";

export class GitRoutes {
  readonly #deps: SandboxDeps;
  readonly #baseOf: BaseOf;

  readonly routes: RouteTable = { clone: { POST: (call) => this.#clone(call) } };

  constructor(deps: SandboxDeps, baseOf: BaseOf) {
    this.#deps = deps;
    this.#baseOf = baseOf;
  }

  /** Responds when git runs, or when it is certain that it will not. */
  #clone({ request, requestId }: ModuleRequest): Promise<Response> {
    return new Promise((resolve, reject) => {
      const reader = new AbortController();
      let events: CloneEvents | undefined;
      const onStarted = () => {
        events = new CloneEvents();
        resolve(events.respond(() => reader.abort(readerGone())));
        return events;
      };
      runGatedWrite(this.#deps.gated, request, async (turn) => {
        const cloneCall = await readJson<CloneCall>(request);
        const base = this.#baseOf(cloneCall.session);
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
