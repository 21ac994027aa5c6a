/**
 * A small shell: a folder, variables, and command lines. Each of its commands behaves like the real one; see
 * programs.ts for the programs.
 */
import { type FakeAgent, toAbsolute } from "./agent.ts";
import { programs } from "./programs.ts";
import type { Input } from "./stdio.ts";
import { type Stop, Stopped } from "./waiting.ts";

export type Io = {
  input: Input;
  out(text: string | Uint8Array): Promise<void> | void;
  err(text: string | Uint8Array): Promise<void> | void;
  /** Only in a terminal. */
  size?: () => { cols: number; rows: number };
};

export type ProgramDeps = { agent: FakeAgent; io: Io; stop: Stop; env: Record<string, string> };

/** Thrown by `exit`: the shell itself ends. */
export class Exit extends Error {
  readonly code: number;

  constructor(code: number) {
    super(`exit ${code}`);
    this.code = code;
  }
}

const definition = /^(\w+)\(\) \{ (.*); \}$/;
const assignment = /^([A-Za-z_]\w*)=([\s\S]*)$/;

export class Shell {
  readonly pid: number;
  cwd: string;
  readonly exported: Map<string, string>;
  readonly #variables: Map<string, string>;
  /** Aliases and functions, by name. */
  readonly #short = new Map<string, string>();
  readonly #agent: FakeAgent;
  #last = 0;

  constructor(agent: FakeAgent, cwd: string, env: Record<string, string>) {
    this.#agent = agent;
    this.pid = agent.nextPid();
    this.cwd = cwd;
    this.exported = new Map(Object.entries(env));
    this.#variables = new Map();
  }

  /** A shell with the same state, which it changes for itself only. */
  fork(cwd: string | undefined, env: Record<string, string>): Shell {
    const exported = { ...Object.fromEntries(this.exported), ...env };
    const fork = new Shell(this.#agent, cwd ?? this.cwd, exported);
    for (const [name, value] of this.#variables) fork.#variables.set(name, value);
    for (const [name, line] of this.#short) fork.#short.set(name, line);
    return fork;
  }

  /** Returns the exit code of the last command. Throws Exit and Stopped. */
  async run(line: string, io: Io, stop: Stop): Promise<number> {
    const [, defined = "", body = ""] = definition.exec(line) ?? [];
    if (defined !== "") {
      this.#short.set(defined, body);
      return 0;
    }
    for (const command of parseLine(line)) {
      if (command.when === "ok" && this.#last !== 0) continue;
      if (command.when === "failed" && this.#last === 0) continue;
      const to = command.toStderr ? { ...io, out: io.err } : io;
      this.#last = await this.#simple(command, to, stop);
    }
    return this.#last;
  }

  async #simple(command: SimpleCommand, io: Io, stop: Stop): Promise<number> {
    const words = command.words.map((word) => this.#expand(word));
    const [name = "", ...args] = words;
    const [, variable = "", value = ""] = assignment.exec(name) ?? [];
    if (variable !== "" && args.length === 0) {
      (this.exported.has(variable) ? this.exported : this.#variables).set(variable, value);
      return 0;
    }
    const short = this.#short.get(name);
    if (short !== undefined) return this.run([short, ...args].join(" "), io, stop);
    switch (name) {
      case "alias":
        for (const arg of args) this.#short.set(...halves(arg));
        return 0;
      case "cd":
        return this.#changeFolder(args[0] ?? "/", io);
      case "export":
        for (const arg of args) this.#export(arg);
        return 0;
      case "exit":
        throw new Exit(args[0] === undefined ? this.#last : Number(args[0]) & 255);
      case "kill":
        return this.#kill(args);
      case "pwd":
        await io.out(`${this.cwd}\n`);
        return 0;
      case "mkdir":
        for (const arg of args) this.#agent.tree.makeFolders(toAbsolute(arg, this.cwd));
        return 0;
      case "sh":
        return this.#child(args[1] ?? "", io, stop);
    }
    const env = Object.fromEntries(this.exported);
    return runProgram([name, ...args], { agent: this.#agent, io, stop, env }, "sh: 1: ");
  }

  #expand(word: Word): string {
    return word
      .map((piece) => (typeof piece === "string" ? piece : this.#value(piece.name)))
      .join("");
  }

  #value(name: string): string {
    if (name === "$") return String(this.pid);
    if (name === "?") return String(this.#last);
    return this.#variables.get(name) ?? this.exported.get(name) ?? "";
  }

  #export(text: string): void {
    const [, name = text, value = this.#value(text)] = assignment.exec(text) ?? [];
    this.#variables.delete(name);
    this.exported.set(name, value);
  }

  async #changeFolder(to: string, io: Io): Promise<number> {
    const path = toAbsolute(to, this.cwd);
    if (this.#agent.tree.folders.has(path)) {
      this.cwd = path;
      return 0;
    }
    await io.err(`cd: can't cd to ${to}\n`);
    return 2;
  }

  #kill([signal = "-TERM", pid]: string[]): number {
    if (Number(pid) !== this.pid) return 1;
    const name = signal.replace(/^-(?:SIG)?/, "");
    throw new Stopped(`SIG${name === "9" ? "KILL" : name}`);
  }

  async #child(line: string, io: Io, stop: Stop): Promise<number> {
    const child = new Shell(this.#agent, this.cwd, Object.fromEntries(this.exported));
    try {
      return await child.run(line, io, stop);
    } catch (error) {
      if (error instanceof Exit) return error.code;
      throw error;
    }
  }
}

function halves(text: string): [string, string] {
  const split = text.indexOf("=");
  return [text.slice(0, split), text.slice(split + 1)];
}

/** Exits with 127 and a message if there is no such program. */
export async function runProgram(
  [name = "", ...args]: string[],
  running: ProgramDeps,
  before = "",
): Promise<number> {
  const program = programs[name];
  if (program !== undefined) return program(args, running);
  await running.io.err(`${before}${name}: not found\n`);
  return 127;
}

/** `when`: the required outcome of the previous command. */
type SimpleCommand = { words: Word[]; toStderr: boolean; when: "always" | "ok" | "failed" };

/** A word: texts and names of variables. */
type Word = (string | { name: string })[];

const token =
  /(?<space>[ \t]+)|(?<next>&&|\|\||;|\n)|(?<stderr>1?>&2)|'(?<single>[^']*)'|"(?<double>[^"]*)"|\$(?<name>[A-Za-z_]\w*|[$?])|\$\{(?<braced>[A-Za-z_]\w*)\}|(?<text>[^\s;&|'"$>]+|.)/gy;

const variable = /\$(?:([A-Za-z_]\w*|[$?])|\{([A-Za-z_]\w*)\})/g;

/** Parses a command line: commands in a row, words, quotes, variables, `>&2`. */
function parseLine(line: string): SimpleCommand[] {
  const commands: SimpleCommand[] = [];
  let command: SimpleCommand = { words: [], toStderr: false, when: "always" };
  let word: Word | undefined;
  const endWord = () => {
    if (word !== undefined) command.words.push(word);
    word = undefined;
  };
  const add = (...pieces: Word) => {
    word = [...(word ?? []), ...pieces];
  };
  const endCommand = (when: SimpleCommand["when"]) => {
    endWord();
    if (command.words.length > 0) commands.push(command);
    command = { words: [], toStderr: false, when };
  };
  for (const { groups = {} } of line.matchAll(token)) {
    const { next, single, double, text } = groups;
    const name = groups.name ?? groups.braced;
    if (groups.space !== undefined) endWord();
    else if (next !== undefined) {
      endCommand(next === "&&" ? "ok" : next === "||" ? "failed" : "always");
    } else if (groups.stderr !== undefined) {
      endWord();
      command.toStderr = true;
    } else if (single !== undefined) add(single);
    else if (double !== undefined) add("", ...expandable(double));
    else if (name !== undefined) add({ name });
    else add(text ?? "");
  }
  endCommand("always");
  return commands;
}

function expandable(text: string): Word {
  const pieces: Word = [];
  let from = 0;
  for (const match of text.matchAll(variable)) {
    pieces.push(text.slice(from, match.index), { name: match[1] ?? match[2] ?? "" });
    from = match.index + match[0].length;
  }
  pieces.push(text.slice(from));
  return pieces;
}
