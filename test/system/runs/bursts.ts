/**
 * Sends many commands at once to one sandbox, round after round: each appends its own word to a file once and prints it.
 */
import { setTimeout as pause } from "node:timers/promises";
import { expect } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { until } from "../../until.ts";
import type { Answer, RunningServer } from "../server.ts";
import { connectionsOf } from "../sockets.ts";

/** Only a hang meets it. */
const answerMs = 90_000;
/** Longer than a short response. */
const longCharacters = 200_000;
const longerMs = limits.execHeartbeatAfterMs + 500;
const wide = 16;

type Made = { command: string; stdout: string };
/** Makes a command that appends the word and prints it. */
export type Kind = (word: string) => Made;

export const short: Kind = (word) => ({
  command: `echo ${word} >> ran; echo ${word}`,
  stdout: `${word}\n`,
});
export const slow: Kind = (word) => ({
  command: `echo ${word} >> ran; sleep ${longerMs / 1000}; echo ${word}`,
  stdout: `${word}\n`,
});
export const long: Kind = (word) => ({
  command: `echo ${word} >> ran; echo ${word}; head -c ${longCharacters} /dev/zero | tr '\\0' x`,
  stdout: `${word}\n${"x".repeat(longCharacters)}`,
});

export const underLease = (token: unknown) => ({ "berth-lease": String(token) });

export type CommandEnd = {
  word: string;
  /** `cut`: its caller's connection ended without an answer. Else `ran`, or the code of its error. */
  end: string;
};

export class Bursts {
  readonly id: string;
  readonly results: CommandEnd[] = [];
  #server: RunningServer;
  #headers: Record<string, string> = {};
  #words = 0;

  static async in(server: RunningServer): Promise<Bursts> {
    return new Bursts(server, await server.create({ onIdle: "none" }));
  }

  private constructor(server: RunningServer, id: string) {
    this.#server = server;
    this.id = id;
  }

  /** The same sandbox, of the server that came back. */
  backOn(server: RunningServer): void {
    this.#server = server;
  }

  /** All that follow are sent under it; undefined: under none. */
  hold(token: unknown): void {
    this.#headers = token === undefined ? {} : underLease(token);
  }

  /** Anything else about its sandbox. */
  call(
    method: string,
    tail: string,
    body?: unknown,
    headers: Record<string, string> = {},
    signal: AbortSignal = AbortSignal.timeout(answerMs),
  ): Promise<Answer> {
    const path = `/v1/sandboxes/${this.id}${tail}`;
    return this.#server.call(method, path, body, { headers, signal });
  }

  /** In a row, so that the line is open after them: the first two go by requests. */
  async row(count = 4): Promise<void> {
    for (let n = 0; n < count; n += 1) await this.exec(short);
  }

  /** Bursts, on a line that is open, for as long as something else is done. */
  async while(work: () => Promise<void>): Promise<void> {
    await this.row();
    let over = false;
    const stream = async (_: unknown, n: number) => {
      const kinds = n === 0 ? [slow, short] : n === 1 ? [long, short] : [short];
      for (let index = 0; !over; index += 1) {
        const { end } = await this.exec(kinds[index % kinds.length] ?? short);
        // Who is refused does not come again at once.
        if (end !== "ran") await pause(20);
      }
    };
    const working = Promise.all(Array.from({ length: wide }, stream));
    working.catch(() => undefined);
    try {
      await this.more(wide);
      await work();
    } finally {
      over = true;
    }
    await working;
  }

  /** So many run from here on. */
  async more(count: number): Promise<void> {
    const ran = () => this.results.filter(({ end }) => end === "ran").length;
    const from = ran();
    await until(`${count} more run, after ${from}`, () => ran() >= from + count, answerMs);
  }

  async exec(kind: Kind, signal: AbortSignal = AbortSignal.timeout(answerMs)): Promise<CommandEnd> {
    this.#words += 1;
    const word = `w${this.#words}`;
    const results = { word, end: await this.#endOf(kind(word), signal) };
    this.results.push(results);
    return results;
  }

  async #endOf({ command, stdout }: Made, signal: AbortSignal): Promise<string> {
    let answer: Answer;
    try {
      answer = await this.call("POST", "/exec", { command }, this.#headers, signal);
    } catch (error) {
      if (error instanceof DOMException && error.name === "TimeoutError") throw error;
      return "cut";
    }
    const { error, exitCode } = answer.body;
    if (error !== undefined) return error.code;
    // A command that a signal ended may have printed less.
    if (exitCode !== null) expect(answer.body).toMatchObject({ exitCode: 0, stdout });
    return "ran";
  }

  /** How many there are of each end. */
  ends(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { end } of this.results) counts[end] = (counts[end] ?? 0) + 1;
    return counts;
  }

  /** All that ran, in its order. */
  async ran(): Promise<string[]> {
    const { status, body } = await this.call(
      "POST",
      "/exec",
      { command: "cat ran" },
      this.#headers,
    );
    expect(status, JSON.stringify(body)).toBe(200);
    return String(body.stdout).trim().split("\n");
  }

  /** Nothing ran twice, and what was answered ran. That an answer is of its own call was seen when it came. */
  async check(): Promise<void> {
    const lines = await this.ran();
    expect(new Set(lines).size, "nothing ran twice").toBe(lines.length);
    const answered = this.results.filter(({ end }) => end === "ran").map(({ word }) => word);
    expect(answered.length).toBeGreaterThan(wide);
    const ran = new Set(lines);
    expect(answered.filter((word) => !ran.has(word))).toEqual([]);
  }

  /** Connections of its agent, the channel included. */
  connections(): number {
    return connectionsOf(this.#server.agentOf(this.id).pid);
  }
}
