/** Finds processes and terminals by pid or tag, and sends them input, sizes and signals. */
import type { Process, Processes } from "../../protocol/process.ts";
import type { Terminal, Terminals } from "../../protocol/terminal.ts";
import { ConnectError } from "./connect-framing.ts";
import type { DaemonCall } from "./daemon.ts";

type Work = { kind: "process"; process: Process } | { kind: "terminal"; terminal: Terminal };

/** How long an exited process can still be connected to. */
const exitedMs = 30_000;
const signals: Record<string, string> = {
  SIGNAL_SIGTERM: "SIGTERM",
  SIGNAL_SIGKILL: "SIGKILL",
  "15": "SIGTERM",
  "9": "SIGKILL",
};
const bytesType = { "content-type": "application/octet-stream" };

/** Throws not_found. A pid may have been used before: the newest counts. */
export async function findWork(
  { calls, sandbox }: DaemonCall,
  selector: unknown,
  { isRunning = false } = {},
): Promise<Work> {
  const { pid, tag } = (selector ?? {}) as { pid?: unknown; tag?: unknown };
  const base = `/v1/sandboxes/${sandbox}`;
  if (typeof pid === "number" && Number.isInteger(pid) && pid > 0) {
    const { processes } = await calls.json<Processes>("GET", `${base}/processes?pid=${pid}`);
    const [process] = processes;
    if (process !== undefined && isStillKnown(process, isRunning)) {
      return { kind: "process", process };
    }
    const { terminals } = await calls.json<Terminals>("GET", `${base}/terminals`);
    const terminal = terminals.find((candidate) => candidate.pid === pid);
    if (terminal !== undefined) return { kind: "terminal", terminal };
    throw new ConnectError("not_found", `process with pid ${pid} not found`);
  }
  if (typeof tag === "string" && /^[\w.-]{1,64}$/.test(tag)) {
    const path = `${base}/processes?name=${encodeURIComponent(tag)}`;
    const { processes } = await calls.json<Processes>("GET", path);
    const [process] = processes;
    if (process !== undefined && isStillKnown(process, isRunning)) {
      return { kind: "process", process };
    }
  }
  throw new ConnectError("not_found", `process ${JSON.stringify(selector ?? {})} not found`);
}

function isStillKnown({ state, endedAt }: Process, isRunning: boolean): boolean {
  if (state === "running") return true;
  return !isRunning && Date.now() - Date.parse(endedAt ?? "") < exitedMs;
}

export async function list({ calls, sandbox }: DaemonCall): Promise<unknown> {
  const base = `/v1/sandboxes/${sandbox}`;
  const [{ processes }, { terminals }] = await Promise.all([
    calls.json<Processes>("GET", `${base}/processes?state=running`),
    calls.json<Terminals>("GET", `${base}/terminals`),
  ]);
  const ofProcesses = processes.map(({ argv = [], cwd, pid, name }) => ({
    config: configOf(argv, cwd),
    pid,
    ...(name === undefined ? {} : { tag: name }),
  }));
  const ofTerminals = terminals.map(({ argv, pid }) => ({ config: configOf(argv), pid }));
  return { processes: [...ofProcesses, ...ofTerminals] };
}

function configOf([cmd = "", ...args]: string[], cwd?: string): object {
  return { cmd, args, envs: {}, ...(cwd === undefined ? {} : { cwd }) };
}

export async function sendInput(call: DaemonCall): Promise<void> {
  const { calls, sandbox, message } = call;
  const { stdin, pty } = (message.input ?? {}) as { stdin?: unknown; pty?: unknown };
  const work = await findWork(call, message.process, { isRunning: true });
  const isTerminal = work.kind === "terminal";
  const data = isTerminal ? pty : stdin;
  if (typeof data !== "string") {
    const kind = isTerminal ? "a terminal takes `pty`" : "a process takes `stdin`";
    throw new ConnectError("internal", `${kind} input only`);
  }
  const path =
    work.kind === "terminal"
      ? `/v1/sandboxes/${sandbox}/terminals/${work.terminal.id}/input`
      : `/v1/sandboxes/${sandbox}/processes/${work.process.id}/stdin`;
  const body = Buffer.from(data, "base64");
  await calls.send(path, { method: "POST", body, headers: bytesType });
}

/** Where nothing is to be closed, nothing happens. */
export async function closeStdin(call: DaemonCall): Promise<void> {
  const { calls, sandbox, message } = call;
  const work = await findWork(call, message.process, { isRunning: true });
  if (work.kind === "terminal" || work.process.stdin.ended) return;
  const path = `/v1/sandboxes/${sandbox}/processes/${work.process.id}/stdin?eof=1`;
  await calls.send(path, { method: "POST", body: new Uint8Array(0), headers: bytesType });
}

export async function sendSignal(call: DaemonCall): Promise<void> {
  const { calls, sandbox, message } = call;
  const signal = signals[String(message.signal)];
  if (signal === undefined) {
    throw new ConnectError("unimplemented", "signal must be SIGNAL_SIGTERM or SIGNAL_SIGKILL");
  }
  const work = await findWork(call, message.process, { isRunning: true });
  if (work.kind === "terminal") {
    await calls.json("DELETE", `/v1/sandboxes/${sandbox}/terminals/${work.terminal.id}`);
    return;
  }
  const path = `/v1/sandboxes/${sandbox}/processes/${work.process.id}/signal`;
  await calls.json("POST", path, { signal, to: "process" });
}

export async function update(call: DaemonCall): Promise<void> {
  const { calls, sandbox, message } = call;
  const size = sizeOf(message.pty);
  const work = await findWork(call, message.process, { isRunning: true });
  if (size === undefined) return;
  if (work.kind === "process") throw new ConnectError("internal", "the process has no terminal");
  await calls.json("PATCH", `/v1/sandboxes/${sandbox}/terminals/${work.terminal.id}`, size);
}

export function sizeOf(pty: unknown): { cols: number; rows: number } | undefined {
  const size = (pty as { size?: { cols?: unknown; rows?: unknown } } | undefined)?.size;
  if (size === undefined || size === null) return undefined;
  const { cols = 80, rows = 24 } = size;
  if (Number.isInteger(cols) && Number.isInteger(rows)) {
    return { cols: Number(cols), rows: Number(rows) };
  }
  throw new ConnectError("invalid_argument", "pty.size must have whole numbers");
}
