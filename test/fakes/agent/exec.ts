/**
 * Runs commands whose output is returned as a whole: outside of sessions, or in the shell of a session.
 */

import { BerthError } from "../../../src/protocol/errors.ts";
import type { AgentExecCall, AgentSessionExecCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { FakeAgent } from "./agent.ts";
import { environment, nameOf, type Outcome, runCommand, timedOut } from "./command.ts";
import { Input } from "./input.ts";
import { decode, Output } from "./output.ts";
import { type Io, Shell } from "./shell.ts";
import { leaseLost, Stop } from "./stop.ts";
import type { CommandAnswer } from "./stored-results.ts";

/** The caller has checked the fence in the same synchronous step. */
export async function exec(agent: FakeAgent, call: AgentExecCall): Promise<CommandAnswer> {
  const run = () => {
    const shell = new Shell(agent, agent.folder(call.cwd), environment(agent, call.env));
    return runToAnswer(agent, call, call.timeoutMs, (io, stop) =>
      runCommand(call, { agent, shell, io, stop }),
    );
  };
  return call.keep === true ? agent.storedResults.runOnce(call.execId, run) : run();
}

export type CapturedOutput = { stdout: string; stderr: string; truncated: boolean };

type Call = Pick<AgentExecCall, "command" | "argv" | "execId" | "stdin" | "encoding"> &
  Pick<AgentSessionExecCall, "maxOutputBytes">;

/** Counts as gated work while it runs. */
export async function runToAnswer(
  agent: FakeAgent,
  call: Call,
  timeoutMs: number,
  run: (io: Io, stop: Stop) => Promise<Outcome>,
  /** The error of a session that ended with the command. */
  endError: (written: CapturedOutput) => BerthError | undefined = () => undefined,
): Promise<CommandAnswer> {
  if (agent.running.size >= limits.execConcurrentMax) {
    throw new BerthError("too_many", `at most ${limits.execConcurrentMax} commands run at once`);
  }
  const began = Date.now();
  agent.commandsRun.push(nameOf(call));
  const output = new Output(call.maxOutputBytes);
  const io: Io = {
    input: Input.of(decode(call.stdin, call.encoding)),
    out: (text) => output.write("stdout", text),
    err: (text) => output.write("stderr", text),
  };
  const stop = new Stop();
  const limit = stop.after(timeoutMs, timedOut);
  agent.running.set(call.execId, { fence: agent.fence, stop });
  const idle = agent.markBusy();
  const { cut, ...outcome } = await run(io, stop).finally(() => {
    limit();
    agent.running.delete(call.execId);
    idle();
  });
  if (cut === "cut") throw new TypeError("connection reset");
  const written = {
    stdout: output.text("stdout", call.encoding),
    stderr: output.text("stderr", call.encoding),
    truncated: output.truncated,
  };
  const end = endError(written);
  if (end !== undefined) throw end;
  if (cut !== undefined) throw leaseLost();
  const result = {
    execId: call.execId,
    ...outcome,
    ...written,
    leftovers: 0,
    durationMs: Math.max(0, Date.now() - began),
    incarnation: agent.incarnation,
  };
  const { exitCode, signal } = outcome;
  return { body: JSON.stringify(result), exitCode, signal };
}
