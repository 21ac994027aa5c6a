/**
 * The history of a run: every call with its outcome, and what the clients may claim by their responses. See checks/
 * for the conclusions and final-state.ts for the state at the end.
 */

/**
 * `ack`: the call took effect. `refused`: it had no effect. `unknown`: it was interrupted and may have taken effect,
 * may still do so, or never. `hung`: it did not end within the limit.
 */
export type Outcome = "ack" | "refused" | "unknown" | "hung";

export type Call = {
  client: string;
  verb: string;
  sandboxId: string;
  startedMs: number;
  /** Absent while the call is running. */
  endedMs?: number;
  outcome?: Outcome;
  /** The code of its error; `untyped` if the error is not in the table. */
  code?: string;
  detail?: string;
};

/** A value with a name that only one client writes: a metadata key or a file. */
export type Write = { sandboxId: string; name: string; value: string; outcome: Outcome };

export type Version = { sandboxId: string; version: number; ifMatch?: number };

/** A command that leaves its marker once per execution. */
export type Run = { sandboxId: string; marker: string; outcome: Outcome; code?: string };

export type Grant = {
  sandboxId: string;
  holder: string;
  fence: number;
  calledMs: number;
  returnedMs: number;
};

type CreatedSandbox = {
  id: string;
  scope?: string;
  calledMs: number;
  returnedMs: number;
};

export type DestroyedSandbox = { id: string; calledMs: number; ackedMs?: number };

/** `drop`: its removal was requested, or acknowledged. */
export type SavedCheckpoint = { sandboxId: string; id: string; drop?: "requested" | "acked" };

/** What a client read, and every value that earlier responses allow. */
export type Read = {
  client: string;
  what: string;
  sandboxId: string;
  allowed: string[];
  got: string;
  trail?: string[];
};

/** Numbered lines of a program that starts at 0. */
export type Stream = {
  sandboxId: string;
  what: string;
  lines: number[];
  /** The expected number of lines, if the program ended successfully. */
  lineCount?: number;
  /** The reader was notified of a gap, so the lines cannot be checked. */
  isTruncated?: true;
};

export function isComplete({ lineCount, isTruncated }: Stream): boolean {
  return lineCount !== undefined && !isTruncated;
}

const trailMax = 25;

export class History {
  readonly calls: Call[] = [];
  readonly metadata: Write[] = [];
  readonly versions: Version[] = [];
  readonly files: Write[] = [];
  readonly runs: Run[] = [];
  readonly grants: Grant[] = [];
  readonly created: CreatedSandbox[] = [];
  readonly destroyed: DestroyedSandbox[] = [];
  readonly saved: SavedCheckpoint[] = [];
  readonly reads: Read[] = [];
  readonly streams: Stream[] = [];
  /** How often each fault was injected. */
  readonly faults = new Map<string, number>();
  readonly faultTimes: { name: string; ms: number }[] = [];
  #marks = 0;
  readonly #startedAt = performance.now();

  now(): number {
    return performance.now() - this.#startedAt;
  }

  /** Returns a word that was never used before. */
  mark(): string {
    this.#marks += 1;
    return `m${this.#marks}`;
  }

  fault(name: string): void {
    this.faultTimes.push({ name, ms: this.now() });
    this.faults.set(name, (this.faults.get(name) ?? 0) + 1);
  }

  /** Describes the newest calls on a sandbox and the faults between them, to explain a wrong read. */
  trail(sandboxId: string): string[] {
    const calls = this.calls.filter((call) => call.sandboxId === sandboxId).slice(-trailMax);
    const from = calls[0]?.startedMs ?? 0;
    const lines = calls.map(({ client, verb, startedMs, endedMs, outcome, code }) => ({
      ms: startedMs,
      text: `${client} ${verb} ${outcome ?? "open"}${code ? ` ${code}` : ""} until ${Math.round(endedMs ?? 0)}`,
    }));
    const faults = this.faultTimes.filter(({ ms }) => ms >= from);
    return [...lines, ...faults.map(({ name, ms }) => ({ ms, text: `${name} ended` }))]
      .toSorted((a, b) => a.ms - b.ms)
      .map(({ ms, text }) => `${Math.round(ms)} ${text}`);
  }

  count(outcome: Outcome): number {
    return this.calls.filter((call) => call.outcome === outcome).length;
  }
}
