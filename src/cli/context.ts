/** What every command gets: server, streams, working directory, output, interrupts. */
import { type Berth, connect } from "../client/index.ts";
import { Failure } from "./failure.ts";
import { Interrupts } from "./interrupts.ts";
import { Output, Progress } from "./output/output.ts";
import { findServer, type Server } from "./server/find-server.ts";
import { nodeFetch } from "./server/node-fetch.ts";
import { LazyWebSocket } from "./server/web-socket.ts";

export type HostProcess = {
  cwd(): string;
  env: NodeJS.ProcessEnv;
  stdin: NodeJS.ReadStream;
  stdout: NodeJS.WriteStream;
  stderr: NodeJS.WriteStream;
};

export class Context {
  readonly env: NodeJS.ProcessEnv;
  readonly json: boolean;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  /** stderr is a terminal that can show progress. */
  readonly tty: boolean;
  readonly output: Output;
  readonly progress: Progress;
  readonly interrupts = new Interrupts();
  readonly #world: HostProcess;
  #server: Server | undefined;
  #berth: Berth | undefined;

  constructor(world: HostProcess, json: boolean) {
    const { env, stdin, stdout, stderr } = world;
    this.#world = world;
    this.env = env;
    this.json = json;
    this.stdin = stdin;
    this.stdout = stdout;
    this.stderr = stderr;
    this.tty = stderr.isTTY === true && env.TERM !== "dumb";
    this.output = new Output(stdout, stderr, { json, plain: isPlain(env) });
    this.progress = new Progress(this.tty && !json && env.CI === undefined);
  }

  get cwd(): string {
    try {
      return this.#world.cwd();
    } catch {
      throw new Failure("The current directory no longer exists.", { code: "no_checkout" });
    }
  }

  /** Looked up on first use, because help and completion need no server. */
  get server(): Server {
    this.#server ??= findServer(this.cwd, this.env);
    return this.#server;
  }

  get berth(): Berth {
    const { url, key } = this.server;
    this.#berth ??= connect({ url, key, fetch: nodeFetch, WebSocket: LazyWebSocket });
    return this.#berth;
  }
}

/** As no-color.org defines it: it is set to a value that is not empty. */
function isPlain(env: NodeJS.ProcessEnv): boolean {
  return (env.NO_COLOR ?? "") !== "" || env.TERM === "dumb";
}
