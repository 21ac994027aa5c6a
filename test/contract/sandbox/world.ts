/**
 * Owns what the suite over the sandbox's interface needs around it: callers, the container, the clock, evictions.
 * Does not own how a call travels: whoever runs the suite brings that.
 */
import { it } from "vitest";
import type { BerthApi, SandboxApi } from "../../../src/protocol/api.ts";
import type { EventData } from "../../../src/protocol/event.ts";
import type { LeaseGranted, LeaseQueued } from "../../../src/protocol/lease.ts";
import type { CreateInput } from "../../../src/protocol/sandbox.ts";
import { checked } from "./checked.ts";

export type Inside = { alive: boolean; ran: string[]; running: number; starts: string[] };

/** What cannot be done to every Berth: to evict its objects, to set its clock, to compare trees that it saved. */
export type Power =
  | "clock"
  | "compare"
  | "evict"
  | "fillEvents"
  | "holdStarts"
  | "ran"
  | "ring"
  | "sockets";

export type World = {
  can: ReadonlySet<Power>;
  berth: BerthApi;
  /** The same of another tenant. */
  other: BerthApi;
  /** The sandbox as somebody sees it who may only read it and lease it. */
  leaser(id: string): Promise<SandboxApi>;
  inside(id: string): Promise<Inside & { metadata: Record<string, string>; copied: number }>;
  holdStarts(id: string): Promise<void>;
  goOn(id: string): Promise<void>;
  /** The object of a sandbox, or of a plan by its tenant and name: `local/release`. */
  evict(id: string): Promise<void>;
  /** From now on the clock shows this, and stands. */
  clock(at: number): void;
  /** As if that many events more had happened before. */
  fillEvents(id: string, count: number): Promise<void>;
  /** Rings the alarm, if one is set. */
  ring(id: string): Promise<boolean>;
  /** The WebSocket of a terminal; a call that is refused instead rejects with the status. */
  connect(id: string, terminal: string, query: string, protocol?: string): Promise<Socket>;
};

/** What has come, in order: text frames as they are, bytes as text. */
export type Socket = {
  readonly received: ({ frame: string } | { bytes: string })[];
  readonly closed: number | undefined;
  send(data: string | Uint8Array): void;
  close(): void;
};

/** A sentence that needs more than each Berth allows; where it cannot be looked at, it is left out. */
export function saying(world: World, ...needs: Power[]) {
  return it.runIf(needs.every((power) => world.can.has(power)));
}

export type Refusal = { code: string; message: string; facts: Record<string, unknown> };

/** What a call is refused with; a call that is not refused fails the test. */
export async function refusal(call: PromiseLike<unknown>): Promise<Refusal> {
  let answer: unknown;
  try {
    answer = await call;
  } catch (error) {
    const { code, message, facts } = error as Partial<Refusal>;
    if (code === undefined) throw error;
    return { code, message: message ?? "", facts: facts ?? {} };
  }
  throw new Error(`it was not refused but answered ${JSON.stringify(answer)}`);
}

/** Of calls that were made at the same time. */
export function refusals(calls: PromiseLike<unknown>[]): Promise<Refusal[]> {
  return Promise.all(calls.map(refusal));
}

export async function made(
  world: World,
  call: CreateInput = {},
): Promise<{ id: string; box: SandboxApi }> {
  const { id } = await world.berth.create({ waitMs: 10_000, ...call });
  return { id, box: checked(world.berth.sandbox(id)) };
}

export function granted(answer: LeaseGranted | LeaseQueued): LeaseGranted {
  if ("token" in answer) return answer;
  throw new Error(`it was not granted but queued at ${answer.position}`);
}

export function queued(answer: LeaseGranted | LeaseQueued): LeaseQueued {
  if ("ticket" in answer) return answer;
  throw new Error(`it was not queued but granted to ${answer.holder}`);
}

/** The newest event of a kind, as it is told. */
export async function told<Type extends EventData["type"]>(
  box: SandboxApi,
  type: Type,
): Promise<Extract<EventData, { type: Type }>[]> {
  const { events } = await box.events({ limit: 1000 });
  return events
    .map(({ event }) => event)
    .filter((event): event is Extract<EventData, { type: Type }> => event.type === type);
}

/** Looked at again and again until it holds, never for ever. The clock of the test may stand meanwhile. */
export async function soon(holds: () => Promise<void>): Promise<void> {
  const limit = performance.now() + 30_000;
  for (;;) {
    try {
      return await holds();
    } catch (error) {
      if (performance.now() > limit) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
