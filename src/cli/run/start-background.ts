/** Starts a named process that outlasts its lease, in place of the one with that name, and waits until it is ready. */
import { randomUUID } from "node:crypto";
import type { Sandbox as SandboxHandle } from "../../client/index.ts";
import type { Process, ProcessInput } from "../../protocol/process.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";

export type BackgroundCommand = {
  name: string;
  program: Pick<ProcessInput, "command" | "argv" | "cwd" | "env" | "user">;
  /** Without port and log text: ready if it still runs after a moment. */
  port: number | undefined;
  log: string | undefined;
  timeoutMs: number;
  /** The name in hints, with `--id` if the sandbox was given by id. */
  nameArgs: string;
};

export type StartedProcess = { process: Process; replaced: string | null; readyMs: number };

/** Long enough for a wrong option or a taken port to end the process. */
const settleMs = 500;

const logLinesMax = 20;
type Condition = "exit" | `port:${number}` | `log:${string}`;

const logCharsMax = 4000;
const logBytesMax = 16 * 1024;

export async function startBackground(
  context: Context,
  command: BackgroundCommand,
  sandbox: SandboxHandle,
  lease: string,
): Promise<StartedProcess> {
  const { name, program, port } = command;
  const { requested: signal, forced } = context.interrupts;
  const [old] = await sandbox.processes.list({ name, state: "running" });
  context.progress.show(`${old === undefined ? "Starting" : "Replacing"} ${name}`);
  signal.throwIfAborted();
  // A process that is replaced frees its own port.
  if (port !== undefined && old === undefined)
    await requireFreePort(sandbox, port, { lease, signal });
  const startedAt = performance.now();
  const { info: started } = await sandbox.processes.start(
    { ...program, name, ifRunning: "replace" },
    // The key makes a repeated call start no second process. Only a second interrupt cancels it, because it may have
    // started.
    { lease, idempotencyKey: randomUUID(), signal: forced },
  );
  try {
    // A process without a pid never ran and replaced nothing.
    if (started.pid === null) throw await exitedEarly(sandbox, command, started, old);
    const process = await waitUntilReady(context, started, command, sandbox);
    const readyMs = Math.round(performance.now() - startedAt);
    return { process, replaced: old?.id ?? null, readyMs };
  } catch (thrown) {
    if (signal.aborted && !context.json) {
      context.progress.end();
      context.output.info(
        `${name} is still running. End it with \`berth kill ${command.nameArgs}\`.`,
      );
    }
    throw thrown;
  }
}

async function waitUntilReady(
  { progress, interrupts }: Context,
  { id }: Process,
  command: BackgroundCommand,
  sandbox: SandboxHandle,
): Promise<Process> {
  const { name, port, log, timeoutMs } = command;
  const { requested: signal } = interrupts;
  const until = performance.now() + timeoutMs;
  const waitFor = async (what: Condition, timeoutMs: number) =>
    await sandbox.process(id).wait({ for: what, timeoutMs, signal });
  const conditions: { what: Condition; does: string }[] = [];
  if (port !== undefined) {
    conditions.push({ what: `port:${port}`, does: `listens on port ${port}` });
  }
  if (log !== undefined) {
    conditions.push({ what: `log:${log}`, does: `has written ${JSON.stringify(log)}` });
  }
  let last: Process | undefined;
  for (const { what, does } of conditions) {
    progress.show(`Waiting until ${name} ${does}`);
    const leftMs = Math.max(0, Math.ceil(until - performance.now()));
    const { met, ...process } = await waitFor(what, leftMs);
    if (process.state === "exited") throw await exitedEarly(sandbox, command, process);
    if (!met) throw await notReady(sandbox, command, process, does);
    last = process;
  }
  if (last !== undefined) return last;
  const { met, ...process } = await waitFor("exit", Math.min(settleMs, timeoutMs));
  if (met) throw await exitedEarly(sandbox, command, process);
  return process;
}

async function exitedEarly(
  sandbox: SandboxHandle,
  { name, nameArgs }: BackgroundCommand,
  process: Process,
  old?: Process,
): Promise<Failure> {
  const { id, exitCode = null, signal = null } = process;
  const output = await readLogEnd(sandbox, process);
  const isOldRunning =
    old !== undefined && (await sandbox.process(old.id).get()).state === "running";
  return new Failure(`${name} exited with ${signal ?? exitCode} before it was ready.`, {
    hint: isOldRunning
      ? `The previous process continues: ${old.id}.`
      : `Run \`berth logs ${nameArgs}\` to see its log.`,
    code: "exited_early",
    facts: { sandbox: sandbox.id, process: id, name, exitCode, signal, output },
  });
}

/** The process continues: it may only be slow, and its log says more. */
async function notReady(
  sandbox: SandboxHandle,
  { name, nameArgs, timeoutMs }: BackgroundCommand,
  process: Process,
  does: string,
): Promise<Failure> {
  const output = await readLogEnd(sandbox, process);
  return new Failure(
    `${name} is running but was not ready within ${timeoutMs / 1000} s: waited until it ${does}.`,
    {
      hint: `Follow it with \`berth logs ${nameArgs} -f\`, end it with \`berth kill ${nameArgs}\`, or wait longer with \`--timeout\`.`,
      code: "not_ready",
      facts: { sandbox: sandbox.id, process: process.id, name, output },
    },
  );
}

async function readLogEnd(sandbox: SandboxHandle, { id, log }: Process): Promise<string> {
  const after = Math.max(log.start, log.end - logBytesMax);
  const chunks: Uint8Array[] = [];
  try {
    for await (const event of sandbox.process(id).logs({ after, follow: false })) {
      if (event.type === "output") chunks.push(event.bytes);
    }
  } catch {
    // Reports the failure even without the log.
  }
  const lines = Buffer.concat(chunks).toString("utf8").trimEnd().split("\n");
  return lines.slice(-logLinesMax).join("\n").slice(-logCharsMax);
}

const listenState = "0A";

/** A server that already listens would answer in place of the new process, which then fails to bind. */
async function requireFreePort(
  sandbox: SandboxHandle,
  port: number,
  options: { lease: string; signal: AbortSignal },
): Promise<void> {
  // One of the two files may be missing.
  const argv = ["cat", "/proc/net/tcp", "/proc/net/tcp6"];
  const { stdout } = await sandbox.exec({ argv }, options);
  if (!isListening(stdout, port)) return;
  throw new Failure(`Something already listens on port ${port}. Nothing was started.`, {
    hint: "Run `berth ps` to see what runs in the sandbox, and `berth kill` to end it.",
    code: "port_taken",
    facts: { sandbox: sandbox.id, port },
  });
}

/** Reads the kernel's tables: one line per socket, with its local address and state in hexadecimal. */
export function isListening(tables: string, port: number): boolean {
  return tables.split("\n").some((line) => {
    const [, local = "", , state] = line.trim().split(/\s+/);
    return state === listenState && Number.parseInt(local.split(":").at(-1) ?? "", 16) === port;
  });
}
