/**
 * Owns one process in the background: started under its name, in place of the one that has it, and waited for until it is
 * ready. Does not own the lease under which it starts, nor what was before (flow.ts): it outlives them.
 */
import { randomUUID } from "node:crypto";
import type { SandboxHandle } from "../../client/index.ts";
import type { Process, ProcessInput } from "../../protocol/process.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import type { Interrupts } from "../live/interrupts.ts";
import { demandPort } from "./demand-port.ts";

export type Named = {
  name: string;
  program: Pick<ProcessInput, "command" | "argv" | "cwd" | "env">;
  /** Without both: it runs still after a moment. */
  port: number | undefined;
  log: string | undefined;
  withinMs: number;
  /** How it is called in hints: with the sandbox, where that was named. */
  words: string;
};

export type Around = { sandbox: SandboxHandle; lease: string; interrupts: Interrupts };

export type Begun = { process: Process; replaced: string | null; readyMs: number };

/** Who has mistaken an option, or a port that is taken, has heard of it by then. */
const momentMs = 500;

const saidLinesMax = 20;
const saidCharsMax = 4000;
const readBytesMax = 16 * 1024;

export async function runNamed(context: Context, named: Named, around: Around): Promise<Begun> {
  const { sandbox, lease, interrupts } = around;
  const { name, program, port } = named;
  const { asked: signal } = interrupts;
  const [old] = (await sandbox.processes({ name, state: "running" })).processes;
  context.progress.tell(`${old === undefined ? "starting" : "replacing"} ${name}`);
  signal.throwIfAborted();
  // The one that goes leaves its own.
  if (port !== undefined && old === undefined) await demandPort(sandbox, port, { lease, signal });
  const began = performance.now();
  const started = await sandbox.startProcess(
    { ...program, name, ifRunning: "replace" },
    // Sent again after a lost answer it is still the same process. Once it is sent it may have begun.
    { lease, idempotencyKey: randomUUID(), signal: interrupts.insisted },
  );
  try {
    // What cannot run has replaced nothing.
    if (started.pid === null) throw await exitedEarly(sandbox, named, started, old);
    const process = await untilReady(context, started, named, around);
    const readyMs = Math.round(performance.now() - began);
    return { process, replaced: old?.id ?? null, readyMs };
  } catch (thrown) {
    if (signal.aborted && !context.json) {
      context.progress.end();
      context.output.say(`${name} goes on; \`berth kill ${named.words}\` ends it`);
    }
    throw thrown;
  }
}

async function untilReady(
  { progress }: Context,
  { id }: Process,
  named: Named,
  { sandbox, interrupts }: Around,
): Promise<Process> {
  const { name, port, log, withinMs } = named;
  const { asked: signal } = interrupts;
  const until = performance.now() + withinMs;
  const seen = async (what: string, timeoutMs: number) =>
    await sandbox.waitForProcess(id, { for: what, timeoutMs, signal });
  const conditions = [
    ...(port === undefined ? [] : [{ what: `port:${port}`, does: `listens on port ${port}` }]),
    ...(log === undefined ? [] : [{ what: `log:${log}`, does: `says ${JSON.stringify(log)}` }]),
  ];
  let last: Process | undefined;
  for (const { what, does } of conditions) {
    progress.tell(`waiting until ${name} ${does}`);
    const leftMs = Math.max(0, Math.ceil(until - performance.now()));
    const { met, process } = await seen(what, leftMs);
    if (process.state === "exited") throw await exitedEarly(sandbox, named, process);
    if (!met) throw await notReady(sandbox, named, process, does);
    last = process;
  }
  if (last !== undefined) return last;
  const { met, process } = await seen("exit", Math.min(momentMs, withinMs));
  if (met) throw await exitedEarly(sandbox, named, process);
  return process;
}

async function exitedEarly(
  sandbox: SandboxHandle,
  { name, words }: Named,
  process: Process,
  old?: Process,
): Promise<Failure> {
  const { id, exitCode = null, signal = null } = process;
  const output = await lastWords(sandbox, process);
  const goesOn = old !== undefined && (await sandbox.process(old.id)).state === "running";
  return new Failure(`${name} has exited with ${signal ?? exitCode} before it was ready`, {
    hint: goesOn
      ? `What ran as ${name} before goes on: ${old.id}.`
      : `\`berth logs ${words}\` prints all that it wrote.`,
    code: "exited_early",
    facts: { sandbox: sandbox.id, process: id, name, exitCode, signal, output },
  });
}

/** It goes on: it may only be slow, and its log says more. */
async function notReady(
  sandbox: SandboxHandle,
  { name, words, withinMs }: Named,
  process: Process,
  does: string,
): Promise<Failure> {
  const output = await lastWords(sandbox, process);
  return new Failure(`${name} runs, but not so that it ${does} within ${withinMs / 1000} s`, {
    hint: `\`berth logs ${words} -f\` follows it, \`berth kill ${words}\` ends it; --timeout waits longer.`,
    code: "not_ready",
    facts: { sandbox: sandbox.id, process: process.id, name, output },
  });
}

/** The end of what it wrote, both streams as they came. */
async function lastWords(sandbox: SandboxHandle, { id, log }: Process): Promise<string> {
  const after = Math.max(log.start, log.end - readBytesMax);
  const pieces: Uint8Array[] = [];
  try {
    for await (const event of sandbox.followLogs(id, { after, follow: false })) {
      if (event.type === "output") pieces.push(event.bytes);
    }
  } catch {
    // The failure itself is what is to be told.
  }
  const lines = Buffer.concat(pieces).toString("utf8").trimEnd().split("\n");
  return lines.slice(-saidLinesMax).join("\n").slice(-saidCharsMax);
}
