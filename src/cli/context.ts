/**
 * Owns what every command is given: the server, where it stands, and whom it talks to.
 * Does not own finding the server (server/find.ts) nor the checkout (checkout/checkout.ts): it asks once, when needed.
 */
import { WebSocket } from "ws";
import { type Berth, connect } from "../client/index.ts";
import { Failure } from "./failure.ts";
import { Output } from "./output/output.ts";
import { Progress } from "./output/progress.ts";
import { findServer, type Server } from "./server/find.ts";

export type World = {
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
  /** Whether a person sees what is said. */
  readonly tty: boolean;
  readonly output: Output;
  readonly progress: Progress;
  readonly #world: World;
  #server: Server | undefined;
  #berth: Berth | undefined;

  constructor(world: World, json: boolean) {
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
      throw new Failure("the folder you stand in is gone", { code: "no_checkout" });
    }
  }

  /** Found when it is first needed: help and completion need none. */
  get server(): Server {
    this.#server ??= findServer(this.cwd, this.env);
    return this.#server;
  }

  get berth(): Berth {
    const { url, key } = this.server;
    // Node 20 has no WebSocket of its own.
    this.#berth ??= connect({ url, key, WebSocket });
    return this.#berth;
  }
}

/** As no-color.org has it: whatever its value, unless that is empty. */
function isPlain(env: NodeJS.ProcessEnv): boolean {
  return (env.NO_COLOR ?? "") !== "" || env.TERM === "dumb";
}
