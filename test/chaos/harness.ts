/**
 * Owns the place that one client works at: its chance, the boxes, and calls that are recorded with how they ended.
 * Does not own what the client asks for (clients/).
 */
import { type Berth, BerthError, type SandboxHandle } from "../../src/client/index.ts";
import type { Random } from "../sim/random.ts";
import type { Call, History, Outcome } from "./history.ts";

/** No call may take longer: a container that hangs is replaced after 30 s, and calls are repeated for 30 s. */
export const hangsAfterMs = 100_000;

export type Answer<Content> =
  | { outcome: "ack"; value: Content }
  | { outcome: Exclude<Outcome, "ack">; code: string; error: unknown };

export type Turn = () => Promise<void>;
export type ClientMaker = (desk: Desk) => Turn;

/** After these it is not known what became of the call. */
const unknownCodes = new Set([
  ...["internal", "lease_lost", "session_terminated", "stale_handle", "result_gone"],
]);
/** No client has a reason to see these, whatever was done to the server. */
export const faultCodes: ReadonlySet<string> = new Set(["internal", "untyped", "bad_request"]);
/** A sandbox that was lost too often waits for somebody who says that it shall start. */
const stuckCodes = new Set(["start_failed", "not_running"]);

export class Desk {
  readonly name: string;
  readonly berth: Berth;
  readonly history: History;
  readonly random: Random;
  /** Shared by the clients. */
  readonly boxes: readonly string[];
  readonly isOver: () => boolean;

  constructor(given: Pick<Desk, "name" | "berth" | "history" | "random" | "boxes" | "isOver">) {
    this.name = given.name;
    this.berth = given.berth;
    this.history = given.history;
    this.random = given.random;
    this.boxes = given.boxes;
    this.isOver = given.isOver;
  }

  box(): string {
    return this.boxes[this.random.between(0, this.boxes.length - 1)] ?? "";
  }

  mark(): string {
    return `${this.history.mark()}-${this.name}`;
  }

  /** About one sandbox; one that has to be started by hand is. */
  async ask<Content>(
    verb: string,
    id: string,
    ask: (sandbox: SandboxHandle) => Promise<Content>,
  ): Promise<Answer<Content>> {
    const answer = await this.call(verb, id, (berth) => ask(berth.sandbox(id)));
    if (answer.outcome === "refused" && stuckCodes.has(answer.code)) {
      await this.call("start", id, (berth) => berth.sandbox(id).start());
    }
    return answer;
  }

  async call<Content>(
    verb: string,
    box: string,
    ask: (berth: Berth) => Promise<Content>,
  ): Promise<Answer<Content>> {
    const call: Call = { client: this.name, verb, box, beganMs: this.history.now() };
    this.history.calls.push(call);
    const over = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), hangsAfterMs);
    });
    const asked = ask(this.berth.with({ signal: over.signal }));
    try {
      const value = await Promise.race([asked, late]);
      if (value === "late") return this.#ended(call, "hung", "hung", undefined);
      call.endedMs = this.history.now();
      call.outcome = "ack";
      return { outcome: "ack", value };
    } catch (error) {
      const { outcome, code } = read(error);
      return this.#ended(call, outcome, code, error);
    } finally {
      clearTimeout(timer);
      if (call.outcome === "hung") {
        over.abort();
        asked.catch(() => {});
      }
    }
  }

  #ended(call: Call, outcome: Exclude<Outcome, "ack">, code: string, error: unknown) {
    call.endedMs = this.history.now();
    Object.assign(call, { outcome, code });
    if (faultCodes.has(code)) {
      const requestId = error instanceof BerthError ? ` (request ${error.requestId})` : "";
      call.detail = `${error}${requestId}`;
    }
    return { outcome, code, error };
  }
}

function read(error: unknown): { outcome: Exclude<Outcome, "ack">; code: string } {
  // The client's own limit, of calls that may take long by their nature.
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return { outcome: "hung", code: "hung" };
  }
  if (!(error instanceof BerthError)) return { outcome: "unknown", code: "untyped" };
  const { code, facts } = error;
  const cutOff = code === "operation_interrupted" && facts.admitted !== false;
  return { outcome: cutOff || unknownCodes.has(code) ? "unknown" : "refused", code };
}

/** Of a command: it did what it should only where it says so. */
export function ranWell(answer: Answer<{ exitCode: number | null }>): Outcome {
  if (answer.outcome !== "ack") return answer.outcome;
  return answer.value.exitCode === 0 ? "ack" : "unknown";
}

/** A shell command that leaves a line; what a full disk cut off before cannot hide it. */
export function marking(file: "ran" | "holds", line: string): string {
  return `printf '\\n%s\\n' '${line}' >> /workspace/${file}`;
}

/** A command under no lease that leaves its marker, and says when it begins and ends: work beside a lease is seen. */
export function markedWork(marker: string, centiseconds: number): string {
  return [
    marking("ran", marker),
    marking("holds", `U ${marker} b`),
    `sleep 0.0${centiseconds}`,
    marking("holds", `U ${marker} e`),
  ].join(" && ");
}
