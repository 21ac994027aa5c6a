/**
 * Owns what a run has recorded: every call with its end, and what the clients may claim by the answers they got.
 * Does not own what follows from it (checks/), nor what is there in the end (truth.ts).
 */

/**
 * `ack`: it was done. `refused`: nothing was done. `unknown`: it was cut off, and may have happened, may happen still,
 * or never. `hung`: no end within the limit.
 */
export type Outcome = "ack" | "refused" | "unknown" | "hung";

export type Call = {
  client: string;
  verb: string;
  box: string;
  beganMs: number;
  /** Left out while it is under way. */
  endedMs?: number;
  outcome?: Outcome;
  /** Of its error; `untyped` where it was none of the table. */
  code?: string;
  detail?: string;
};

/** A value under a name that one client alone writes: a key of the metadata, a file. */
export type Write = { box: string; name: string; value: string; outcome: Outcome };

export type Version = { box: string; version: number; ifMatch?: number };

/** A command that leaves its marker behind once for each time that it runs. */
export type Run = { box: string; marker: string; outcome: Outcome; code?: string };

export type Grant = {
  box: string;
  holder: string;
  fence: number;
  askedMs: number;
  answeredMs: number;
};

export type Made = {
  id: string;
  scope?: string;
  askedMs: number;
  answeredMs: number;
};

export type Ended = { id: string; askedMs: number; ackedMs?: number };

/** `drop`: somebody asked for its end, and was answered that it is gone. */
export type Saved = { box: string; id: string; drop?: "asked" | "acked" };

/** What a client read, and all that it may have read by what was answered before. */
export type Read = {
  client: string;
  what: string;
  box: string;
  allowed: string[];
  got: string;
  trail?: string[];
};

/** Numbered lines of a program that writes them from 0 on. */
export type Stream = {
  box: string;
  what: string;
  lines: number[];
  /** How many it must have been: the program was seen to end well. */
  whole?: number;
  /** It was told that a piece is gone: what came is no measure then. */
  isShort?: true;
};

export function isWhole({ whole, isShort }: Stream): boolean {
  return whole !== undefined && !isShort;
}

const trailMax = 25;

export class History {
  readonly calls: Call[] = [];
  readonly metadata: Write[] = [];
  readonly versions: Version[] = [];
  readonly files: Write[] = [];
  readonly runs: Run[] = [];
  readonly grants: Grant[] = [];
  readonly made: Made[] = [];
  readonly ended: Ended[] = [];
  readonly saved: Saved[] = [];
  readonly reads: Read[] = [];
  readonly streams: Stream[] = [];
  /** What was done to the server, by its name: how often. */
  readonly faults = new Map<string, number>();
  readonly faultsAt: { name: string; ms: number }[] = [];
  #marks = 0;
  readonly #beganAt = performance.now();

  now(): number {
    return performance.now() - this.#beganAt;
  }

  /** A word that was never used before. */
  mark(): string {
    this.#marks += 1;
    return `m${this.#marks}`;
  }

  fault(name: string): void {
    this.faultsAt.push({ name, ms: this.now() });
    this.faults.set(name, (this.faults.get(name) ?? 0) + 1);
  }

  /** The newest calls about a sandbox and the faults between them, in words: how it came to what is read now. */
  trail(box: string): string[] {
    const calls = this.calls.filter((call) => call.box === box).slice(-trailMax);
    const from = calls[0]?.beganMs ?? 0;
    const lines = calls.map(({ client, verb, beganMs, endedMs, outcome, code }) => ({
      ms: beganMs,
      text: `${client} ${verb} ${outcome ?? "open"}${code ? ` ${code}` : ""} until ${Math.round(endedMs ?? 0)}`,
    }));
    const faults = this.faultsAt.filter(({ ms }) => ms >= from);
    return [...lines, ...faults.map(({ name, ms }) => ({ ms, text: `${name} is over` }))]
      .toSorted((one, other) => one.ms - other.ms)
      .map(({ ms, text }) => `${Math.round(ms)} ${text}`);
  }

  count(outcome: Outcome): number {
    return this.calls.filter((call) => call.outcome === outcome).length;
  }
}
