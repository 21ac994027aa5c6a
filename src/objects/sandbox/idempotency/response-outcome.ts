/**
 * Owns reading, from an answer that is passed on, how the call ended; and reading it to its end where its caller has
 * gone: the command goes on, and counts as in flight until then.
 * Does not own what is done with what was learnt (keyed.ts), nor passing on (pass-on.ts).
 */

import type { Life } from "../../../core/sandbox/record.ts";
import type { ErrorCode, ErrorFacts } from "../../../protocol/errors.ts";
import { limits } from "../../../protocol/limits.ts";
import { parsedJson } from "../../../runtime/short-response.ts";
import type { Reply } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";
import { interrupted } from "../agent/agent-request.ts";
import { passOn } from "../agent/forward-response.ts";
import { bodyOf } from "../agent/guarded-body.ts";
import type { Outcome } from "./key-rows.ts";

export type Learnt = Outcome | "not run";

type Kept = {
  life: Life;
  requestId: string;
  learnt: (learnt: Learnt) => void;
  /** Of the caller that began it; who has joined has nothing to end. */
  done?: () => void;
};

/** What refuses before anything has begun: the key is free again. */
export const notRun: ReadonlySet<string> = new Set<ErrorCode>([
  ...(["bad_request", "bad_json", "bad_cwd", "too_large", "body_timeout", "too_many"] as const),
  "not_found",
  ...(["stale_fence", "lease_lost", "lease_held", "lease_pending", "name_taken"] as const),
]);

/** What stands at the beginning of a long answer. */
const headBytesMax = 4096;
const space = 0x20;

export async function passOnKept(
  actor: SandboxActor,
  response: Response,
  { life, requestId, learnt, ...kept }: Kept,
): Promise<Reply> {
  let isOver = false;
  const done = () => {
    if (!isOver) kept.done?.();
    isOver = true;
  };
  const length = response.headers.get("content-length");
  if (length !== null && Number(length) <= limits.answerWholeBytesMax) {
    const coming = { life, requestId, done, leave: done };
    const reply = await passOn(actor, response, coming);
    if (!(reply instanceof Response)) tell(reply.json, learnt);
    return reply;
  }
  const reading = new Reading(actor, bodyOf(response), { life, learnt, done });
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => reading.pull(controller),
    cancel: () => actor.host.background(reading.toTheEnd()),
  });
  const { status, headers } = response;
  // Its reader going away is no end: `cancel` above takes over.
  const end = () => {
    if (!reading.isLeft) done();
  };
  const coming = { life, requestId, done: end, leave: () => {} };
  return passOn(actor, new Response(body, { status, headers }), coming);
}

class Reading {
  readonly #actor: SandboxActor;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #kept: Required<Omit<Kept, "requestId">>;
  #head: Uint8Array[] = [];
  #headBytes = 0;
  #isTold = false;
  isLeft = false;

  constructor(
    actor: SandboxActor,
    body: ReadableStream<Uint8Array>,
    kept: Required<Omit<Kept, "requestId">>,
  ) {
    this.#actor = actor;
    this.#reader = body.getReader();
    this.#kept = kept;
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    const bytes = await this.#next();
    if (this.isLeft) return;
    if (bytes === undefined) controller.close();
    else controller.enqueue(bytes);
  }

  /** Without its caller. Never rejects. */
  async toTheEnd(): Promise<void> {
    this.isLeft = true;
    for (;;) {
      let cancel = () => {};
      const silence = new Promise<"cut">((resolve) => {
        cancel = this.#actor.reach.timer(limits.streamSilenceMs, () => resolve("cut"));
      });
      const read = await Promise.race([this.#next().catch(() => "cut" as const), silence]);
      cancel();
      if (read === undefined) break;
      if (read !== "cut") continue;
      await this.#reader.cancel().catch(() => undefined);
      await interrupted(this.#actor, this.#kept.life, true).catch(() => undefined);
      break;
    }
    this.#kept.done();
  }

  async #next(): Promise<Uint8Array | undefined> {
    const read = await this.#reader.read();
    if (!read.done) this.#look(read.value);
    return read.value;
  }

  #look(bytes: Uint8Array): void {
    if (this.#isTold) return;
    const from = this.#headBytes > 0 ? 0 : bytes.findIndex((byte) => byte !== space);
    if (from < 0) return;
    this.#head.push(bytes.slice(from, from + headBytesMax));
    this.#headBytes += bytes.length - from;
    // At once: the piece that says it may be the last that comes through.
    this.#isTold = this.#tell() || this.#headBytes >= headBytesMax;
    if (this.#isTold) this.#head = [];
  }

  /** False: the beginning has not come far enough. */
  #tell(): boolean {
    const head = new Uint8Array(this.#head.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const piece of this.#head) {
      head.set(piece, at);
      at += piece.length;
    }
    return tell(new TextDecoder().decode(head), this.#kept.learnt);
  }
}

/** Of a whole answer, or of the beginning of one: how it ended stands before what it wrote. */
function tell(text: string, learnt: (learnt: Learnt) => void): boolean {
  const body = recordOf(text) ?? recordOf(`${text.slice(0, text.indexOf(',"stdout":'))}}`);
  if (body === undefined) return false;
  const { error } = body;
  const { code, ...facts } = (error ?? {}) as ErrorFacts;
  if (error === undefined) learnt(outcomeOf(body));
  else if (code === "result_gone") learnt(outcomeOf(facts));
  else if (notRun.has(String(code))) learnt("not run");
  return true;
}

/** Of a command how it ended; of a process its id, and how it ended where it has. */
function outcomeOf({ id, exitCode, signal, timedOut }: Record<string, unknown>): Outcome {
  const told = { id, exitCode, signal, timedOut };
  const known = Object.entries(told).filter(([, value]) => value !== undefined);
  return Object.fromEntries(known) as Outcome;
}

function recordOf(text: string): Record<string, unknown> | undefined {
  const body = parsedJson(text);
  return typeof body === "object" && body !== null ? { ...body } : undefined;
}
