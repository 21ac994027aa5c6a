/** The process of the embedded engine: starts it, and ends it by closing its stdin. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { Child } from "./child.js";
import { paths, tools } from "./paths.js";
import { UserError } from "./program.js";

const startTimeoutMs = 30_000;
/** More than the engine's own limit for ending all containers. */
const endTimeoutMs = 25_000;

export class Engine {
  title = "The engine";
  /** @type {Child | undefined} */
  child;
  port = 0;
  /** Generated at each start of the launcher; objects read it from workerd's environment. */
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
      // The engine must not read a .env of the user.
      args: ["--no-env-file", paths.engine],
      env: this.#environment(),
    });
    this.child = child;
    const port = await child.firstLine(child.process.stdout, portIn, startTimeoutMs);
    child.logOutput();
    if (port === undefined) {
      child.kill();
      throw new UserError(
        `The engine did not start. The last line of ${child.log.path}: ${child.log.tail(1)}`,
      );
    }
    this.port = port;
  }

  async end() {
    const { child } = this;
    await child?.end(() => child.process.stdin?.end(), endTimeoutMs);
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
      BERTH_ENGINE_PROCESS_RECORD: join(this.data, "processes.json"),
      BERTH_ENGINE_AGENT: paths.agent,
      ...(process.env.BERTH_DISK_FREE_MIN
        ? { BERTH_ENGINE_DISK_FREE_MIN: process.env.BERTH_DISK_FREE_MIN }
        : {}),
      BERTH_ENGINE_CONTAINERS_MAX: String(this.sandboxesMax),
      // Objects store the engine's address, so a restarted engine must use the same port.
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
