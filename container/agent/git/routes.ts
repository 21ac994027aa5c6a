/** Handles the call that clones a repository: gated work with a stream of progress, ended when the reader disconnects. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { CloneCall } from "../../../src/protocol/file.ts";
import { runGatedWrite } from "../files/gated-write.ts";
import type { BaseOf } from "../files/paths.ts";
import type { SandboxDeps } from "../sandbox-deps.ts";
import { readJson } from "../server/body.ts";
import type { ModuleRequest, RouteTable } from "../server/module.ts";
import { clone } from "./clone.ts";
import { CloneEvents } from "./progress.ts";

export function gitRoutes(deps: SandboxDeps, baseOf: BaseOf): RouteTable {
  return { clone: { POST: (call) => respondToClone(call, deps, baseOf) } };
}

/** Responds when git runs, or when it is certain that it will not. */
function respondToClone(
  { request, requestId }: ModuleRequest,
  deps: SandboxDeps,
  baseOf: BaseOf,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const reader = new AbortController();
    let events: CloneEvents | undefined;
    const onStarted = () => {
      events = new CloneEvents();
      resolve(events.respond(() => reader.abort(readerGone())));
      return events;
    };
    runGatedWrite(deps.gated, request, async (ended) => {
      const call = await readJson<CloneCall>(request);
      const signal = AbortSignal.any([ended, reader.signal]);
      return clone(call, { deps, base: baseOf(call.session), signal, onStarted });
    }).then(
      (cloned) => events?.done(cloned),
      (error) => (events === undefined ? reject(error) : events.failed(error, requestId)),
    );
  });
}

function readerGone(): BerthError {
  return new BerthError("operation_interrupted", "The caller disconnected. Nothing was cloned.", {
    facts: { admitted: true, reason: "caller_gone" },
  });
}
