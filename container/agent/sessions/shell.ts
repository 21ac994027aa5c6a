/**
 * Owns one shell and the two channels to it: its lines go in by its standard input, the ends of its commands come out
 * by its standard error, which no command has. Does not own whose turn it is, nor when a shell is ended (session.ts).
 */
import { closeSync, existsSync, openSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { Env } from "../../../src/protocol/fields/env.ts";
import { giveDescriptor, openPipe, type User } from "../kernel/libc.ts";
import { PipeReader } from "../kernel/pipe.ts";
import type { Forest, Tree } from "../supervision/process-tree.ts";
import { type End, Ends } from "./ends.ts";
import { Feed } from "./feed.ts";
import { drawWord } from "./random-word.ts";
import { commandLines, endLines, firstWords, type Streams } from "./script.ts";

export const bash = "/bin/bash";
export const quietly = ["--noprofile", "--norc"];

type Where = { forest: Forest; user: User | undefined; cwd: string; env: Env };

export class Shell {
  readonly tree: Tree;
  /** Resolves when it is ready for its first command; what it says as `cwd` is where it stands. */
  readonly ready: Promise<End | "deaf">;
  readonly #feed: Feed;
  readonly #ends = new Ends();
  readonly #reader: PipeReader;
  /** `$?`, as the last command left it. */
  #status = 0;

  static async start({ forest, ...launch }: Where): Promise<Shell> {
    if (!existsSync(bash)) {
      throw new BerthError("unsupported", `sessions need ${bash}, which this image does not have`);
    }
    const [lines, linesWrite] = openPipe();
    const [endsRead, ends] = openPipe();
    const nowhere = openSync("/dev/null", "w");
    const { user } = launch;
    try {
      if (user !== undefined) giveDescriptor(ends, user);
      const streams = { stdin: lines, stdout: nowhere, stderr: ends };
      const argv = ["bash", ...quietly];
      const tree = await forest.start({ program: bash, argv, ...launch, ...streams });
      return new Shell(tree, Feed.ofDescriptor(linesWrite), endsRead);
    } catch (error) {
      closeSync(endsRead);
      throw error;
    } finally {
      for (const fd of [lines, linesWrite, ends, nowhere]) closeSync(fd);
    }
  }

  private constructor(tree: Tree, feed: Feed, endsRead: number) {
    this.tree = tree;
    this.#feed = feed;
    this.#reader = new PipeReader(endsRead, (bytes) => this.#ends.take(bytes));
    const word = drawWord();
    this.ready = this.#ends.of(word);
    this.#feed.write(Buffer.from(firstWords + endLines(word)));
  }

  /** One at a time. Never resolves where the shell is gone before the command is over: watch its tree. */
  async run(command: string, streams: Streams): Promise<End | "deaf"> {
    const told = await this.look(command, streams);
    if (told !== "deaf") this.#status = told.exitCode;
    return told;
  }

  /** The same, but the next command does not get to know how this one ended. */
  look(command: string, streams: Streams): Promise<End | "deaf"> {
    const word = drawWord();
    const end = this.#ends.of(word);
    const lines = commandLines(command, word, { streams, status: this.#status });
    this.#feed.write(Buffer.from(lines));
    return end;
  }

  /** Once its tree has ended. */
  close(): void {
    this.#feed.close();
    this.#reader.stop();
  }
}
