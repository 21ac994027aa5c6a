/**
 * Owns the answers of commands whose callers have a key: joined while they run, kept for those who ask again.
 */
import { BerthError } from "../../../src/protocol/errors.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Outcome } from "./command.ts";

export type Answer = { body: string; exitCode: Outcome["exitCode"]; signal: Outcome["signal"] };

type Kept = { answer: Promise<Answer>; bytes: number };
type Gone = { gone: Pick<Answer, "exitCode" | "signal"> };

export class Answers {
  readonly #kept = new Map<string, Kept | Gone>();
  #bytes = 0;

  /** The first one with this id runs; every other one has its answer. */
  async once(id: string, run: () => Promise<Answer>): Promise<Answer> {
    if (this.#kept.has(id)) return this.of(id);
    const kept: Kept = { answer: run(), bytes: 0 };
    this.#kept.set(id, kept);
    const answer = await kept.answer;
    kept.bytes = answer.body.length;
    this.#bytes += kept.bytes;
    await this.#makeRoom();
    return answer;
  }

  async of(id: string): Promise<Answer> {
    const kept = this.#kept.get(id);
    if (kept === undefined) throw new BerthError("not_found", "No such command is known here.");
    if (!("gone" in kept)) return kept.answer;
    throw new BerthError("result_gone", "What it wrote is no longer kept.", { facts: kept.gone });
  }

  async #makeRoom(): Promise<void> {
    for (const [id, kept] of this.#kept) {
      if (this.#bytes <= limits.keptAnswersBytesMax) return;
      if ("gone" in kept || kept.bytes === 0) continue;
      const { exitCode, signal } = await kept.answer;
      this.#bytes -= kept.bytes;
      this.#kept.set(id, { gone: { exitCode, signal } });
    }
  }
}
