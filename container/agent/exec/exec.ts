/**
 * Owns the answer to a call that runs a command: plain JSON where it comes soon, a heartbeat before it where it does
 * not; and the way in which a caller who is gone ends its command, or with a key does not.
 * Does not own the command (commands.ts). The answer passes through the Worker untouched.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { ExecResult } from "../../../src/protocol/exec.ts";
import { readJson } from "../server/body.ts";
import { answerWith, callerOf } from "../server/heartbeat.ts";
import type { Kept } from "../server/stored-answers.ts";
import type { Finished } from "./command.ts";
import type { Commands } from "./commands.ts";
import { readExecCall } from "./read-call.ts";

export async function answerExec(
  request: Request,
  { commands, ...around }: { commands: Commands; fence: number; kept: Kept; incarnation: string },
): Promise<Response> {
  const call = readExecCall(await readJson(request));
  const { fence } = around;
  return answerCommand(request, call, around, (gone) => commands.run(call, { fence, gone }));
}

type Called = { execId: string; requestId: string; keep?: boolean | undefined };

/** Of session commands too. `run` throws where nothing began; whoever aborts `gone` ends what it began. */
export async function answerCommand(
  request: Request,
  { execId, requestId, keep }: Called,
  { kept, incarnation }: { kept: Kept; incarnation: string },
  run: (gone: AbortController) => Promise<Finished>,
): Promise<Response> {
  const gone = new AbortController();
  // The order of these is promised: the object reads from the beginning of a long answer how it ended.
  const begin = () =>
    run(gone).then(({ exitCode, signal, timedOut, ...more }): ExecResult => {
      return { execId, exitCode, signal, timedOut, ...more, incarnation };
    });
  const caller = callerOf(request);
  if (keep === true) return answerWith(kept.run(execId, begin), requestId, caller);
  caller.signal.addEventListener("abort", () => gone.abort());
  if (caller.signal.aborted) gone.abort();
  const work = begin().then((result) => Buffer.from(JSON.stringify(result)));
  return answerWith(work, requestId, caller);
}

/** For whoever asks for a command by its id; it begins nothing. */
export async function answerKept(
  request: Request,
  execId: string,
  { kept, requestId }: { kept: Kept; requestId: string },
): Promise<Response> {
  const work = kept.answer(execId);
  if (work === undefined) {
    throw new BerthError("not_found", "no command with this id has begun in this life");
  }
  return answerWith(work, requestId, callerOf(request));
}
