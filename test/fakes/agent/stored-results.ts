/**
 * Results of commands with an idempotency key: shared while they run, stored for repeated calls.
 */
import { BerthError } from "../../../src/protocol/errors.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Outcome } from "./command.ts";

export type CommandAnswer = {
  body: string;
  exitCode: Outcome["exitCode"];
  signal: Outcome["signal"];
};

type StoredAnswer = { answer: Promise<CommandAnswer>; bytes: number };
type DiscardedAnswer = { discarded: Pick<CommandAnswer, "exitCode" | "signal"> };

export class StoredResults {
  readonly #answers = new Map<string, StoredAnswer | DiscardedAnswer>();
  #bytes = 0;

  /** Runs the first call with this id; all others get its result. */
  async runOnce(id: string, run: () => Promise<CommandAnswer>): Promise<CommandAnswer> {
    if (this.#answers.has(id)) return this.get(id);
    const stored: StoredAnswer = { answer: run(), bytes: 0 };
    this.#answers.set(id, stored);
    const answer = await stored.answer;
    stored.bytes = answer.body.length;
    this.#bytes += stored.bytes;
    await this.#makeRoom();
    return answer;
  }

  async get(id: string): Promise<CommandAnswer> {
    const stored = this.#answers.get(id);
    if (stored === undefined) throw new BerthError("not_found", "No such command is known here.");
    if (!("discarded" in stored)) return stored.answer;
    throw new BerthError("result_gone", "What it wrote is no longer kept.", {
      facts: stored.discarded,
    });
  }

  async #makeRoom(): Promise<void> {
    for (const [id, stored] of this.#answers) {
      if (this.#bytes <= limits.storedResultsBytesMax) return;
      if ("discarded" in stored || stored.bytes === 0) continue;
      const { exitCode, signal } = await stored.answer;
      this.#bytes -= stored.bytes;
      this.#answers.set(id, { discarded: { exitCode, signal } });
    }
  }
}
