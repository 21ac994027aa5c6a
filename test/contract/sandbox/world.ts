/** What the contract suite needs from a Berth under test: callers, the container, the clock, evictions. */
import { expect, it } from "vitest";
import type { BerthApi, SandboxApi } from "../../../src/protocol/api.ts";
import type { EventData } from "../../../src/protocol/event.ts";
import type { LeaseGranted, LeaseQueued } from "../../../src/protocol/lease.ts";
import type { CreateInput } from "../../../src/protocol/sandbox.ts";
import { checked } from "./checked.ts";

export type Inside = { alive: boolean; ran: string[]; running: number; starts: string[] };

/** What only some Berths under test allow: evicting objects, setting the clock, comparing saved trees. */
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
  /** The same for another tenant. */
  other: BerthApi;
  /** The sandbox for a caller with the rights `read` and `lease` only. */
  leaser(id: string): Promise<SandboxApi>;
  inside(id: string): Promise<Inside & { metadata: Record<string, string>; copied: number }>;
  holdStarts(id: string): Promise<void>;
  goOn(id: string): Promise<void>;
  /** Evicts the object of a sandbox, or of a plan by tenant and name: `local/release`. */
  evict(id: string): Promise<void>;
  /** Sets the clock to this moment and stops it. */
  clock(at: number): void;
  /** Adds that many earlier events. */
  fillEvents(id: string, count: number): Promise<void>;
  /** Fires the alarm, if one is set. */
  ring(id: string): Promise<boolean>;
  /** The WebSocket of a terminal; rejects with the status if the call is refused. */
  connect(id: string, terminal: string, query: string, protocol?: string): Promise<Socket>;
};

/** What has arrived, in order: text frames as they are, bytes as text. */
export type Socket = {
  readonly received: ({ frame: string } | { bytes: string })[];
  readonly closed: number | undefined;
  send(data: string | Uint8Array): void;
  close(): void;
};

/** A test that needs more than every Berth allows; skipped where that is missing. */
export function itWith(world: World, ...needs: Power[]) {
  return it.runIf(needs.every((power) => world.can.has(power)));
}

export type Refusal = { code: string; message: string; facts: Record<string, unknown> };

/** The failure of a call; a call that succeeds fails the test. */
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

type Call = PromiseLike<unknown> | (() => PromiseLike<unknown>);

/** The failures of concurrent calls. */
export function refusals(calls: readonly Call[]): Promise<Refusal[]> {
  // The promise of an RPC call is a function too.
  return Promise.all(calls.map((call) => refusal("then" in call ? call : call())));
}

/** A call that must fail with this code, and with at least these facts. */
export async function expectRefusal(
  call: PromiseLike<unknown>,
  code: string,
  facts: Record<string, unknown> = {},
): Promise<void> {
  await expectRefusals([call], code, facts);
}

/** Concurrent calls that must all fail alike. */
export async function expectRefusals(
  calls: readonly Call[],
  code: string,
  facts: Record<string, unknown> = {},
): Promise<void> {
  for (const refused of await refusals(calls)) {
    expect(refused).toMatchObject({ code, facts: expect.objectContaining(facts) });
  }
}

export async function createSandbox(
  world: World,
  call: CreateInput = {},
): Promise<{ id: string; box: SandboxApi }> {
  const { id } = await world.berth.create({ waitMs: 10_000, ...call });
  return { id, box: checked(world.berth.sandbox(id)) };
}

export function acquireLease(answer: LeaseGranted | LeaseQueued): LeaseGranted {
  if ("token" in answer) return answer;
  throw new Error(`it was not granted but queued at ${answer.position}`);
}

export function queued(answer: LeaseGranted | LeaseQueued): LeaseQueued {
  if ("ticket" in answer) return answer;
  throw new Error(`it was not queued but granted to ${answer.holder}`);
}

/** The newest event of a kind. */
export async function eventsOfType<Type extends EventData["type"]>(
  box: SandboxApi,
  type: Type,
): Promise<Extract<EventData, { type: Type }>[]> {
  const { events } = await box.events({ limit: 1000 });
  return events
    .map(({ event }) => event)
    .filter((event): event is Extract<EventData, { type: Type }> => event.type === type);
}

/** Polls until a condition holds, within a limit. The test's clock may stand meanwhile. */
export async function eventually(holds: () => Promise<void>): Promise<void> {
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
