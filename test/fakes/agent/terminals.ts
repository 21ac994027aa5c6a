/**
 * The terminals of one agent in memory, each with its input line, echo, program and output, and the routes below
 * /v1/terminals. See terminal-socket.ts for their viewers.
 */
import { BerthError } from "../../../src/protocol/errors.ts";
import type { AgentTerminalCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Screen, Terminal, TerminalSize } from "../../../src/protocol/terminal.ts";
import type { FakeAgent } from "./agent.ts";
import { type AgentCall, noRoute } from "./call.ts";
import { type Outcome, openShell, outcomeOf, requireRoom, runCommand } from "./command.ts";
import { Exit, type Io, type Shell } from "./shell.ts";
import { bytesOf, concat, Input } from "./stdio.ts";
import { connect } from "./terminal-socket.ts";
import { Stop } from "./waiting.ts";

export class Terminals {
  readonly #agent: FakeAgent;
  readonly #all = new Map<string, FakeTerminal>();
  readonly #endRequests = new Set<string>();

  constructor(agent: FakeAgent) {
    this.#agent = agent;
  }

  get count(): number {
    return this.#all.size;
  }

  get attached(): number {
    return [...this.#all.values()].reduce((sum, { viewers }) => sum + viewers.size, 0);
  }

  cut(): void {
    for (const terminal of this.#all.values()) terminal.end("cut");
  }

  async answer(call: AgentCall): Promise<Response> {
    const [id, verb] = call.rest;
    if (id === undefined) return call.method === "POST" ? this.#create(call) : this.#list(call);
    const terminal = this.#of(id);
    switch (`${call.method} ${verb ?? ""}`) {
      case "GET ":
        return call.json(terminal.record);
      case "PATCH ":
        terminal.resize(await call.body<TerminalSize>());
        return call.json(terminal.record);
      case "DELETE ":
        this.#endRequests.add(id);
        terminal.end();
        await terminal.finished;
        return call.json({ id, ended: true });
      case "POST input":
        terminal.type(await call.request.text());
        return call.json(terminal.record);
      case "GET screen":
        return call.json(terminal.screen);
      case "GET connect":
        return connect(this.#agent, terminal, call.request, call.headers);
    }
    throw noRoute();
  }

  async #create(call: AgentCall): Promise<Response> {
    const terminalCall = await call.body<AgentTerminalCall>();
    call.admitFence();
    const known = this.#all.get(terminalCall.id);
    if (known !== undefined) return call.json(known.record);
    requireRoom(this.count, limits.terminalsMax, "terminals");
    const terminal = new FakeTerminal(this.#agent, terminalCall);
    this.#all.set(terminalCall.id, terminal);
    if (terminalCall.endsWithLease) this.#agent.trackUntilLeaseEnds(terminalCall.id, terminal);
    void terminal.finished.then(({ exitCode, signal, cut }) => {
      this.#all.delete(terminalCall.id);
      const reasonByCut = cut === "fenced" ? "lease_lost" : "exited";
      const reason = this.#endRequests.delete(terminalCall.id) ? "ended" : reasonByCut;
      if (this.#agent.ended) return;
      this.#agent.recordExit({ kind: "terminal", id: terminalCall.id, exitCode, signal, reason });
    });
    return call.json(terminal.record, 201);
  }

  #list(call: AgentCall): Response {
    const terminals = [...this.#all.values()].map(({ record }) => record);
    return call.json({ terminals, nextCursor: null });
  }

  #of(id: string): FakeTerminal {
    const terminal = this.#all.get(id);
    if (terminal !== undefined) return terminal;
    throw new BerthError("not_found", `there is no terminal ${id}`);
  }
}

export type Viewer = { wrote(): void; resized(): void; ended(outcome: Outcome): void };

const endOfInput = "\u0004";
const interrupt = "\u0003";

export class FakeTerminal {
  readonly viewers = new Set<Viewer>();
  readonly finished: Promise<Outcome>;
  size: TerminalSize;
  readonly #agent: FakeAgent;
  readonly #call: AgentTerminalCall;
  readonly #createdAt = new Date().toISOString();
  readonly #shell: Shell;
  readonly stop = new Stop();
  readonly #input = new Input();
  #line = "";
  #ring: Uint8Array = new Uint8Array();
  #offset = 0;

  constructor(agent: FakeAgent, call: AgentTerminalCall) {
    this.#agent = agent;
    this.#call = call;
    this.size = { cols: call.cols, rows: call.rows };
    this.#shell = openShell(agent, call);
    this.finished = this.#run();
  }

  get record(): Terminal {
    return {
      id: this.#call.id,
      pid: this.#shell.pid,
      ...this.size,
      argv: this.#call.argv ?? ["bash", "-l"],
      createdAt: this.#createdAt,
      viewers: this.viewers.size,
      offset: this.#offset,
      incarnation: this.#agent.incarnation,
    };
  }

  get offset(): number {
    return this.#offset;
  }

  /** The offset of the oldest retained byte. */
  get start(): number {
    return this.#offset - this.#ring.length;
  }

  get screen(): Screen {
    const lines = this.screenText.split("\n");
    return {
      text: lines.join("\n"),
      ...this.size,
      cursor: { x: lines.at(-1)?.length ?? 0, y: lines.length - 1 },
      title: "",
      alternate: false,
      offset: this.#offset,
    };
  }

  /** The last lines that fit on the screen. */
  get screenText(): string {
    const text = new TextDecoder().decode(this.#ring).replaceAll("\r", "");
    return text
      .split("\n")
      .slice(-this.size.rows)
      .map((line) => line.trimEnd())
      .join("\n");
  }

  from(offset: number, bytesMax: number): Uint8Array {
    return this.#ring.slice(offset - this.start, offset - this.start + bytesMax);
  }

  /** Notifies all viewers except the one that resized it. */
  resize({ cols, rows }: TerminalSize, by?: Viewer): void {
    if (cols === this.size.cols && rows === this.size.rows) return;
    this.size = { cols, rows };
    for (const viewer of this.viewers) if (viewer !== by) viewer.resized();
  }

  end(why = "SIGHUP"): void {
    this.stop.now(why);
  }

  /** Like a kernel: echoes the input and passes it to the program line by line. */
  type(text: string): void {
    for (const char of text) {
      if (char === interrupt) this.end("SIGINT");
      else if (char === endOfInput && this.#line === "") this.#input.end();
      else if (char === "\r" || char === "\n") {
        this.write("\r\n");
        this.#input.write(bytesOf(`${this.#line}\n`));
        this.#line = "";
      } else {
        this.write(char);
        this.#line += char;
      }
    }
  }

  write(output: string | Uint8Array): void {
    const bytes = bytesOf(output);
    this.#ring = concat([this.#ring, bytes]).slice(-limits.terminalRingBytes);
    this.#offset += bytes.length;
    for (const viewer of this.viewers) viewer.wrote();
  }

  async #run(): Promise<Outcome> {
    const showOutput = (output: string | Uint8Array) =>
      this.write(new TextDecoder().decode(bytesOf(output)).replaceAll("\n", "\r\n"));
    const io: Io = { input: this.#input, out: showOutput, err: showOutput, size: () => this.size };
    const { argv } = this.#call;
    const deps = { agent: this.#agent, shell: this.#shell, io, stop: this.stop };
    const outcome = await (argv === undefined
      ? outcomeOf(() => this.#interact(io))
      : runCommand({ argv }, deps));
    for (const viewer of this.viewers) viewer.ended(outcome);
    this.viewers.clear();
    return outcome;
  }

  async #interact(io: Io): Promise<number> {
    let last = 0;
    for (;;) {
      this.write("$ ");
      const line = await this.#input.read(this.stop);
      if (line === undefined) throw new Exit(last);
      const text = new TextDecoder().decode(line).trimEnd();
      last = await this.#shell.run(text, io, this.stop);
    }
  }
}
