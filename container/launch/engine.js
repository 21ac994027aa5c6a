/**
 * Owns the embedded engine's process: its start, its return after a crash, its end.
 * Does not own sandboxes: the engine ends those when its standard input closes.
 */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Child } from "./child.js";
import { places, tools } from "./places.js";
import { Refusal, say } from "./say.js";

const startsWithinMs = 30_000;
/** Above the engine's own limit for ending a full house. */
const endsWithinMs = 25_000;
/** An engine that keeps dying is not worth keeping. */
const returnsMax = 5;
const returnsWindowMs = 60_000;
const firstPauseMs = 100;

export class Engine {
  /** @type {Child | undefined} */
  child;
  port = 0;
  isEnding = false;
  /** Minted for each start of the launcher; objects learn it from workerd's environment. */
  secret = randomBytes(32).toString("base64url");

  /**
   * @param {string} data
   * @param {number} sandboxesMax
   */
  constructor(data, sandboxesMax) {
    this.data = data;
    this.sandboxesMax = sandboxesMax;
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  async start() {
    const child = new Child("engine", this.data, {
      program: tools.bun,
      // A .env of the user's must not reach it.
      args: ["--no-env-file", places.engine],
      env: this.#environment(),
    });
    this.child = child;
    const port = await child.firstLine(child.process.stdout, portIn, startsWithinMs);
    child.logOutput();
    if (port === undefined) {
      child.kill();
      throw new Refusal(
        `the engine did not start; ${child.log.path} ends with: ${child.log.tail(1)}`,
      );
    }
    this.port = port;
  }

  /**
   * Starts it again in its place whenever it dies. Resolves only when that is given up.
   * @param {() => void} changed  called with each new process
   */
  async keep(changed) {
    /** @type {number[]} */
    let returns = [];
    for (;;) {
      const ended = await this.child?.ended;
      if (this.isEnding) return new Promise(() => {});
      returns = returns.filter((at) => Date.now() - at < returnsWindowMs);
      if (returns.length >= returnsMax) return;
      returns.push(Date.now());
      say(`the engine ended (${ended?.signal ?? ended?.code}); starting it again`);
      await sleep(firstPauseMs * 2 ** (returns.length - 1));
      if (this.isEnding) continue;
      await this.start().catch((thrown) => say(thrown.message));
      changed();
    }
  }

  async end() {
    this.isEnding = true;
    const { child } = this;
    await child?.end(() => child.process.stdin?.end(), endsWithinMs);
  }

  #environment() {
    const settings = Object.entries(process.env).filter(([name]) =>
      name.startsWith("BERTH_ENGINE_"),
    );
    return {
      ...Object.fromEntries(settings.map(([name, value]) => [name, value ?? ""])),
      PATH: process.env.PATH ?? "/usr/sbin:/usr/bin:/sbin:/bin",
      BUN_RUNTIME_TRANSPILER_CACHE_PATH: "0",
      BERTH_ENGINE_SECRET: this.secret,
      BERTH_ENGINE_DATA: join(this.data, "engine"),
      BERTH_ENGINE_AGENT: places.agent,
      BERTH_ENGINE_CONTAINERS_MAX: String(this.sandboxesMax),
      // Objects know it by its address: an engine that returns must be found where it was.
      BERTH_ENGINE_PORT: String(this.port),
    };
  }
}

/** @param {string} line */
function portIn(line) {
  try {
    const { port } = JSON.parse(line);
    return typeof port === "number" ? port : undefined;
  } catch {
    return undefined;
  }
}
