/** Runs the shell of one session: commands go in by its stdin, their ends come out by a stderr that none inherits. */
import { closeSync, existsSync, openSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { Env } from "../../../src/protocol/fields/env.ts";
import { openPipe } from "../../engine/jail/descriptors.ts";
import { chownDescriptor, type User } from "../kernel/libc.ts";
import { PipeReader } from "../kernel/pipe.ts";
import type { ProcessSupervisor, ProcessTree } from "../supervision/process-tree.ts";
import { PipeWriter } from "./pipe-writer.ts";
import {
  type CommandEnd,
  commandLines,
  EndReader,
  randomWord,
  type Streams,
  setupLines,
} from "./script.ts";

export const bash = "/bin/bash";
export const noRcFlags = ["--noprofile", "--norc"];

type ShellOptions = {
  supervisor: ProcessSupervisor;
  user: User | undefined;
  groups: readonly number[];
  cwd: string;
  env: Env;
};

export class Shell {
  readonly tree: ProcessTree;
  /** Resolves when the shell is ready for its first command; `cwd` is its folder then. */
  readonly ready: Promise<CommandEnd | "unresponsive">;
  readonly #writer: PipeWriter;
  readonly #ends = new EndReader();
  readonly #reader: PipeReader;
  /** `$?` as the last command left it. */
  #status = 0;

  static async start({ supervisor, ...launch }: ShellOptions): Promise<Shell> {
    if (!existsSync(bash)) {
      throw new BerthError("unsupported", `Sessions need ${bash}, which this image does not have.`);
    }
    const [lines, linesWrite] = openPipe();
    const [endsRead, ends] = openPipe();
    const devNull = openSync("/dev/null", "w");
    const { user } = launch;
    try {
      if (user !== undefined) chownDescriptor(ends, user);
      const streams = { stdin: lines, stdout: devNull, stderr: ends };
      const argv = ["bash", ...noRcFlags];
      const tree = await supervisor.start({ program: bash, argv, ...launch, ...streams });
      return new Shell(tree, PipeWriter.ofDescriptor(linesWrite), endsRead);
    } catch (error) {
      closeSync(endsRead);
      throw error;
    } finally {
      for (const fd of [lines, linesWrite, ends, devNull]) closeSync(fd);
    }
  }

  private constructor(tree: ProcessTree, writer: PipeWriter, endsRead: number) {
    this.tree = tree;
    this.#writer = writer;
    this.#reader = new PipeReader(endsRead, (bytes) => this.#ends.take(bytes));
    const word = randomWord();
    this.ready = this.#ends.waitFor(word);
    this.#writer.write(Buffer.from(setupLines(word)));
  }

  /** One command at a time. Never resolves if the shell exits before the command is over: watch its tree. */
  async run(command: string, streams: Streams): Promise<CommandEnd | "unresponsive"> {
    const end = await this.runUnseen(command, streams);
    if (end !== "unresponsive") this.#status = end.exitCode;
    return end;
  }

  /** Like `run`, but does not change `$?` for the next command. */
  runUnseen(command: string, streams: Streams): Promise<CommandEnd | "unresponsive"> {
    const word = randomWord();
    const end = this.#ends.waitFor(word);
    const lines = commandLines(command, word, { streams, status: this.#status });
    this.#writer.write(Buffer.from(lines));
    return end;
  }

  /** Call when its tree has ended. */
  close(): void {
    this.#writer.close();
    this.#reader.stop();
  }
}
