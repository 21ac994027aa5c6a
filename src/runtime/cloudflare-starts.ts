/**
 * Owns which start of a platform's container is wanted: calls of one start id join, one that was given up never begins.
 * Does not own how it starts. It knows what this instance of the object asked for; the agent's incarnation knows the rest.
 */
import { BerthError } from "../protocol/errors.ts";
import type { Started, StartOptions } from "./runtime.ts";

type Begin = (options: StartOptions, isWanted: () => boolean) => Promise<Started>;

/** A start is given up within minutes; nobody comes back to one before these. */
const rememberedMax = 100;

export class PlatformStarts {
  readonly #begin: Begin;
  #wanted: string | undefined;
  #underWay: { startId: string; started: Promise<Started> } | undefined;
  readonly #over = new Set<string>();

  constructor(begin: Begin) {
    this.#begin = begin;
  }

  start(options: StartOptions): Promise<Started> {
    const { startId } = options;
    if (this.#over.has(startId)) return Promise.reject(givenUp(startId));
    if (this.#underWay?.startId === startId) return this.#underWay.started;
    if (this.#wanted !== startId) this.giveUp();
    this.#wanted = startId;
    const started = this.#begin(options, () => this.#wanted === startId).finally(() => {
      if (this.#underWay?.started === started) this.#underWay = undefined;
    });
    this.#underWay = { startId, started };
    return started;
  }

  giveUp(): void {
    if (this.#wanted === undefined) return;
    this.#over.add(this.#wanted);
    this.#wanted = undefined;
    const [oldest = ""] = this.#over;
    if (this.#over.size > rememberedMax) this.#over.delete(oldest);
  }
}

export function givenUp(startId: string): BerthError {
  return new BerthError("start_failed", `The start ${startId} was given up.`);
}
