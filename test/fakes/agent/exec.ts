/**
 * Owns commands whose answer comes whole: outside of sessions and, with a shell that is there already, inside.
 */

import { BerthError } from "../../../src/protocol/errors.ts";
import type { AgentExecCall, AgentSessionExecCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { FakeAgent } from "./agent.ts";
import type { Answer } from "./answers.ts";
import { environment, nameOf, type Outcome, runOwn, timedOut } from "./command.ts";
import { Input } from "./input.ts";
import { decoded, Output } from "./output.ts";
import { type Io, Shell } from "./shell.ts";
import { leaseLost, Stop } from "./stop.ts";

/** The fence has been passed in the same piece. */
export async function exec(agent: FakeAgent, call: AgentExecCall): Promise<Answer> {
  const run = () => {
    const shell = new Shell(agent, agent.folder(call.cwd), environment(agent, call.env));
    return answered(agent, call, call.timeoutMs, (io, stop) =>
      runOwn(call, { agent, shell, io, stop }),
    );
  };
  return call.keep === true ? agent.answers.once(call.execId, run) : run();
}

export type Written = { stdout: string; stderr: string; truncated: boolean };

type Call = Pick<AgentExecCall, "command" | "argv" | "execId" | "stdin" | "encoding"> &
  Pick<AgentSessionExecCall, "maxOutputBytes">;

/** Counted as gated work while it runs. */
export async function answered(
  agent: FakeAgent,
  call: Call,
  timeoutMs: number,
  run: (io: Io, stop: Stop) => Promise<Outcome>,
  /** Of a session that ended with it. */
  ended: (written: Written) => BerthError | undefined = () => undefined,
): Promise<Answer> {
  if (agent.running.size >= limits.execConcurrentMax) {
    throw new BerthError("too_many", `at most ${limits.execConcurrentMax} commands run at once`);
  }
  const began = Date.now();
  agent.ran.push(nameOf(call));
  const output = new Output(call.maxOutputBytes);
  const io: Io = {
    input: Input.of(decoded(call.stdin, call.encoding)),
    out: (text) => output.take("stdout", text),
    err: (text) => output.take("stderr", text),
  };
  const stop = new Stop();
  const limit = stop.after(timeoutMs, timedOut);
  agent.running.set(call.execId, { fence: agent.fence, stop });
  const idle = agent.begin();
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
  const end = ended(written);
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
