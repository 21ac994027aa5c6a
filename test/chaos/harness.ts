/**
 * What one client of a run works with: its random numbers, the shared sandboxes, and calls that are recorded with
 * their outcome.
 */
import { type Berth, BerthError } from "../../src/client/index.ts";
import type { SandboxCalls } from "../../src/client/verbs.ts";
import type { ConnectedCalls } from "../berth-calls.ts";
import type { Random } from "../sim/random.ts";
import type { Call, History, Outcome, Read, Run } from "./history.ts";

/** No call may take longer: a hanging container is replaced after 30 s, and calls are retried for 30 s. */
export const hangTimeoutMs = 100_000;

export type CallResult<Content> =
  | { outcome: "ack"; value: Content }
  | { outcome: Exclude<Outcome, "ack">; code: string; error: unknown };

type TakeTurn = () => Promise<void>;
export type ClientMaker = (harness: Harness) => TakeTurn;

/** After these codes the effect of the call is unknown. */
const unknownCodes = new Set([
  ...["internal", "lease_lost", "session_terminated", "stale_handle", "result_gone"],
]);
/** Codes that no client may see, whatever fault was injected. */
export const faultCodes: ReadonlySet<string> = new Set(["internal", "untyped", "bad_request"]);
/** A sandbox that was lost too often waits for an explicit start. */
const stuckCodes = new Set(["start_failed", "not_running"]);

export class Harness {
  readonly name: string;
  readonly berth: ConnectedCalls;
  /** The same server as users of the SDK have it, for what stays connected. */
  readonly sdk: Berth;
  readonly history: History;
  readonly random: Random;
  /** Shared by the clients. */
  readonly sandboxIds: readonly string[];
  readonly isOver: () => boolean;

  constructor(
    options: Pick<
      Harness,
      "name" | "berth" | "sdk" | "history" | "random" | "sandboxIds" | "isOver"
    >,
  ) {
    this.name = options.name;
    this.berth = options.berth;
    this.sdk = options.sdk;
    this.history = options.history;
    this.random = options.random;
    this.sandboxIds = options.sandboxIds;
    this.isOver = options.isOver;
  }

  pickSandbox(): string {
    return this.sandboxIds[this.random.between(0, this.sandboxIds.length - 1)] ?? "";
  }

  mark(): string {
    return `${this.history.mark()}-${this.name}`;
  }

  /** Records a command that leaves its marker. Its outcome is unknown until the caller sets it. */
  startRun(sandboxId: string): Run {
    const run: Run = { sandboxId, marker: this.mark(), outcome: "unknown" };
    this.history.runs.push(run);
    return run;
  }

  /** Records what this client read, and every value that earlier responses allow. */
  recordRead(read: Omit<Read, "client">): void {
    this.history.reads.push({ client: this.name, ...read });
  }

  /** Calls one sandbox, and starts it if it waits for an explicit start. */
  async callSandbox<Content>(
    verb: string,
    id: string,
    send: (sandbox: SandboxCalls) => Promise<Content>,
  ): Promise<CallResult<Content>> {
    const result = await this.call(verb, id, (berth) => send(berth.sandbox(id)));
    if (result.outcome === "refused" && stuckCodes.has(result.code)) {
      await this.call("start", id, (berth) => berth.sandbox(id).start());
    }
    return result;
  }

  async call<Content>(
    verb: string,
    sandboxId: string,
    send: (berth: ConnectedCalls) => Promise<Content>,
  ): Promise<CallResult<Content>> {
    const call: Call = { client: this.name, verb, sandboxId, startedMs: this.history.now() };
    this.history.calls.push(call);
    const aborter = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const timeout = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), hangTimeoutMs);
    });
    const response = send(this.berth.with({ signal: aborter.signal }));
    try {
      const value = await Promise.race([response, timeout]);
      if (value === "late") return this.#finish(call, "hung", "hung", undefined);
      call.endedMs = this.history.now();
      call.outcome = "ack";
      return { outcome: "ack", value };
    } catch (error) {
      const { outcome, code } = classifyError(error);
      return this.#finish(call, outcome, code, error);
    } finally {
      clearTimeout(timer);
      if (call.outcome === "hung") {
        aborter.abort();
        response.catch(() => {});
      }
    }
  }

  #finish(call: Call, outcome: Exclude<Outcome, "ack">, code: string, error: unknown) {
    call.endedMs = this.history.now();
    Object.assign(call, { outcome, code });
    if (faultCodes.has(code)) {
      const requestId = error instanceof BerthError ? ` (request ${error.requestId})` : "";
      call.detail = `${error}${requestId}`;
    }
    return { outcome, code, error };
  }
}

function classifyError(error: unknown): { outcome: Exclude<Outcome, "ack">; code: string } {
  // The client's own limit for calls that may take long.
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return { outcome: "hung", code: "hung" };
  }
  if (!(error instanceof BerthError)) return { outcome: "unknown", code: "untyped" };
  const { code, facts } = error;
  const cutOff = code === "operation_interrupted" && facts.admitted !== false;
  return { outcome: cutOff || unknownCodes.has(code) ? "unknown" : "refused", code };
}

/** The outcome of a command, which has only run if it exits with 0. */
export function commandOutcome(result: CallResult<{ exitCode: number | null }>): Outcome {
  if (result.outcome !== "ack") return result.outcome;
  return result.value.exitCode === 0 ? "ack" : "unknown";
}

/** A shell command that appends a line. It starts with a newline, because a full disk may have cut off the last line. */
export function appendLine(file: "ran" | "holds", line: string): string {
  return `printf '\\n%s\\n' '${line}' >> /workspace/${file}`;
}

/**
 * A command without a lease that leaves its marker and records its start and end, so that work in parallel to a lease
 * is detected.
 */
export function markedWork(marker: string, centiseconds: number): string {
  return [
    appendLine("ran", marker),
    appendLine("holds", `U ${marker} b`),
    `sleep 0.0${centiseconds}`,
    appendLine("holds", `U ${marker} e`),
  ].join(" && ");
}
