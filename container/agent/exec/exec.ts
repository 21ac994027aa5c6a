/**
 * Runs a command for its caller and responds with the result. Without an idempotency key, the command ends when the
 * caller disconnects; with one it continues, and its result is stored. The object passes the response on unchanged.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { ExecResult } from "../../../src/protocol/exec.ts";
import type { AgentExecCall } from "../../../src/protocol/internal/agent.ts";
import { readJson } from "../server/body.ts";
import { readRequestId } from "../server/failure.ts";
import { readFence } from "../server/gated-work.ts";
import { respondWithHeartbeat, watchCaller } from "../server/heartbeat.ts";
import type { StoredResults } from "../server/stored-results.ts";
import type { Commands, Finished } from "./command.ts";
import type { RunningCalls } from "./running-calls.ts";

type ExecDeps = {
  storedResults: StoredResults;
  runningCalls: RunningCalls;
  incarnation: string;
};

export async function handleExec(
  request: Request,
  commands: Commands,
  deps: ExecDeps,
): Promise<Response> {
  const fence = readFence(request.headers);
  // Checked before the body is read, and again when the command starts.
  commands.gated.fence.pass(fence);
  const call = await readJson<AgentExecCall>(request);
  return respondToCommand(request, call, deps, (controller) =>
    commands.run(call, { fence, controller }),
  );
}

type CommandIds = Pick<AgentExecCall, "execId" | "requestId" | "keep">;

/** Serves commands of sessions too. `run` throws if nothing started; aborting its controller ends what it started. */
export async function respondToCommand(
  request: Request,
  { execId, requestId, keep }: CommandIds,
  { storedResults, runningCalls, incarnation }: ExecDeps,
  run: (controller: AbortController) => Promise<Finished>,
): Promise<Response> {
  const controller = new AbortController();
  // The order of these fields is promised: the object reads how a command ended from the start of a long response.
  const start = () => {
    const running = run(controller);
    runningCalls.track(execId, controller, running);
    return running.then(({ exitCode, signal, timedOut, ...more }): ExecResult => {
      return { execId, exitCode, signal, timedOut, ...more, incarnation };
    });
  };
  const caller = watchCaller(request);
  if (keep === true) {
    return respondWithHeartbeat(storedResults.run(execId, start), requestId, caller);
  }
  caller.signal.addEventListener("abort", () => controller.abort());
  if (caller.signal.aborted) controller.abort();
  const result = start().then((finished) => Buffer.from(JSON.stringify(finished)));
  return respondWithHeartbeat(result, requestId, caller);
}

/** Returns the result of an earlier command, or waits for it; starts nothing. */
export async function handleStoredResult(
  request: Request,
  execId: string,
  storedResults: StoredResults,
): Promise<Response> {
  const result = storedResults.find(execId);
  if (result === undefined) {
    throw new BerthError("not_found", "No command with this id has started in this incarnation.");
  }
  return respondWithHeartbeat(result, readRequestId(request), watchCaller(request));
}
