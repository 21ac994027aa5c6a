/**
 * Reads how a call ended from the response that is forwarded. If the caller disconnects, it reads on to the end: the
 * command continues, and counts as in flight until then.
 */
import type { Incarnation } from "../../../core/sandbox/record.ts";
import type { ErrorCode, ErrorFacts } from "../../../protocol/errors.ts";
import { limits } from "../../../protocol/limits.ts";
import { parseJson } from "../../../runtime/bodies.ts";
import type { WireResponse } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";
import { bodyOf, cutOnSilence } from "../agent/body-watchdog.ts";
import { forwardResponse } from "../agent/forward-response.ts";
import type { Outcome } from "./key-rows.ts";

export type CallOutcome = Outcome | "not run";

type OutcomeOptions = {
  agent: Incarnation;
  requestId: string;
  onOutcome: (outcome: CallOutcome) => void;
  /** Only for the caller that started the call; one that joined has nothing to end. */
  onDone?: () => void;
};

/** Errors that refuse a call before it has run: the key is free again. */
export const refusedBeforeRun: ReadonlySet<string> = new Set<ErrorCode>([
  ...(["bad_request", "bad_json", "bad_cwd", "too_large", "body_timeout", "too_many"] as const),
  "not_found",
  ...(["stale_fence", "lease_lost", "lease_held", "lease_pending", "name_taken"] as const),
]);

/** The fields that say how the call ended are within this many characters of the start. */
const headCharsMax = 4096;

export async function forwardWithOutcome(
  actor: SandboxActor,
  response: Response,
  { agent, requestId, onOutcome, ...options }: OutcomeOptions,
): Promise<WireResponse> {
  let isOver = false;
  const onDone = () => {
    if (!isOver) options.onDone?.();
    isOver = true;
  };
  const length = response.headers.get("content-length");
  if (length !== null && Number(length) <= limits.wholeResponseBytesMax) {
    const forward = { agent, requestId, onDone, onReaderLeft: onDone };
    const result = await forwardResponse(actor, response, forward);
    if (!(result instanceof Response)) reportOutcome(result.json, onOutcome);
    return result;
  }
  const reader = new OutcomeReader(actor, bodyOf(response), { agent, onOutcome, onDone });
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => reader.pull(controller),
    cancel: () => actor.host.waitUntil(reader.readToEnd()),
  });
  const { status, headers } = response;
  // A disconnect is not the end: `cancel` above takes over.
  const end = () => {
    if (!reader.hasReaderLeft) onDone();
  };
  const forward = { agent, requestId, onDone: end };
  return forwardResponse(actor, new Response(body, { status, headers }), forward);
}

class OutcomeReader {
  readonly #actor: SandboxActor;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #options: Required<Omit<OutcomeOptions, "requestId">>;
  readonly #decoder = new TextDecoder();
  #head = "";
  #isReported = false;
  hasReaderLeft = false;

  constructor(
    actor: SandboxActor,
    body: ReadableStream<Uint8Array>,
    options: Required<Omit<OutcomeOptions, "requestId">>,
  ) {
    this.#actor = actor;
    this.#reader = body.getReader();
    this.#options = options;
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    const bytes = await this.#next();
    if (this.hasReaderLeft) return;
    if (bytes === undefined) controller.close();
    else controller.enqueue(bytes);
  }

  /** Reads on without the caller. Never rejects. */
  async readToEnd(): Promise<void> {
    this.hasReaderLeft = true;
    for (;;) {
      const read = await cutOnSilence(this.#next(), this.#actor.freeze.startTimer);
      if (read === undefined) break;
      if (read !== "cut") continue;
      await this.#reader.cancel().catch(() => undefined);
      await this.#actor.agentClient.interrupted(this.#options.agent, true).catch(() => undefined);
      break;
    }
    this.#options.onDone();
  }

  async #next(): Promise<Uint8Array | undefined> {
    const read = await this.#reader.read();
    if (!read.done) this.#inspect(read.value);
    return read.value;
  }

  #inspect(bytes: Uint8Array): void {
    if (this.#isReported) return;
    // The agent sends spaces until the response begins.
    this.#head = `${this.#head}${this.#decoder.decode(bytes, { stream: true })}`.trimStart();
    // At once: this chunk may be the last one that arrives.
    const isComplete = reportOutcome(this.#head.slice(0, headCharsMax), this.#options.onOutcome);
    this.#isReported = isComplete || this.#head.length >= headCharsMax;
    if (this.#isReported) this.#head = "";
  }
}

/** Reports the outcome from a whole response or its beginning, where it precedes the output. False if that is too short. */
function reportOutcome(text: string, onOutcome: (outcome: CallOutcome) => void): boolean {
  const body = parseObject(text) ?? parseObject(`${text.slice(0, text.indexOf(',"stdout":'))}}`);
  if (body === undefined) return false;
  const { error } = body;
  const { code, ...facts } = (error ?? {}) as ErrorFacts;
  if (error === undefined) onOutcome(outcomeOf(body));
  else if (code === "result_gone") onOutcome(outcomeOf(facts));
  else if (refusedBeforeRun.has(String(code))) onOutcome("not run");
  return true;
}

/** For a command how it ended; for a process its id, and how it ended if it has. */
function outcomeOf({ id, exitCode, signal, timedOut }: Record<string, unknown>): Outcome {
  const fields = { id, exitCode, signal, timedOut };
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as Outcome;
}

function parseObject(text: string): Record<string, unknown> | undefined {
  const body = parseJson(text);
  return typeof body === "object" && body !== null ? { ...body } : undefined;
}
