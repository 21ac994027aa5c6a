/**
 * The process that serves the Worker: workerd for `npm start`, `wrangler dev` for `npm run dev`.
 */
import { copyFileSync, cpSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { formatAddress, localAddressOf } from "./address.js";
import { Child } from "./child.js";
import { paths, root, tools } from "./paths.js";
import { UserError } from "./program.js";
import { workerdConfig } from "./worker-config.js";

const readyTimeoutMs = 30_000;
const pollMs = 20;
// A process that does not end in time is killed. workerd's storage is a journal: that loses no acknowledged write.
const workerdLimits = { listenMs: 30_000, endMs: 1_500 };
const wranglerLimits = { listenMs: 60_000, endMs: 5_000 };

/** @typedef {{ host: string, port: number, data: string }} WorkerOptions */

/**
 * @typedef {object} WorkerProgram
 * @property {string} name
 * @property {(port: number) => Child} spawn
 * @property {(child: Child) => import("node:stream").Readable | null} listenStream  reports where the program listens
 * @property {(line: string) => string | undefined} urlIn  reads a line of that stream
 * @property {{ listenMs: number, endMs: number }} limits
 */

export class WorkerProcess {
  /** @type {Child | undefined} */
  child;
  url = "";
  #program;
  #port;

  /**
   * @param {WorkerProgram} program
   * @param {number} port  0 for any; a restarted process uses the port of the first one
   */
  constructor(program, port) {
    this.#program = program;
    this.#port = port;
  }

  get title() {
    return this.#program.name;
  }

  /** The address at which this machine reaches it. */
  get localUrl() {
    const url = new URL(this.url);
    url.hostname = localAddressOf(url.hostname.replace(/^\[|\]$/g, ""));
    return url.origin;
  }

  /** Starts the process and returns once it listens. */
  async start() {
    const { name, spawn, listenStream, urlIn, limits } = this.#program;
    const child = spawn(this.#port);
    this.child = child;
    child.logOutput();
    const url = await child.firstLine(listenStream(child), urlIn, limits.listenMs);
    if (url === undefined) {
      child.kill();
      throw new UserError(
        `${name} did not start. The last line of ${child.log.path}: ${child.log.tail(1)}`,
      );
    }
    this.url = url;
    this.#port = Number(new URL(url).port || 80);
  }

  /** Waits until the Worker responds. Fails at once if one of its variables is invalid. */
  async waitUntilReady() {
    const url = new URL("/health", this.localUrl);
    const deadline = Date.now() + readyTimeoutMs;
    let last = "nothing";
    while (Date.now() < deadline) {
      try {
        const response = await fetch(url, { signal: AbortSignal.timeout(5_000) });
        const body = await response.text();
        // A server whose disk is full must start, so that somebody can free room.
        if (response.status === 200 || body.includes('"status":"disk_full"')) return;
        const problem = configurationErrorIn(body);
        if (problem !== undefined) throw new UserError(problem);
        last = `status ${response.status}`;
      } catch (thrown) {
        if (thrown instanceof UserError) throw thrown;
        last = thrown instanceof Error ? thrown.message : String(thrown);
      }
      await sleep(pollMs);
    }
    throw new UserError(
      `Berth does not respond at ${url.href} (${last}). See ${this.child?.log.path}.`,
    );
  }

  async end() {
    const { child } = this;
    await child?.end(() => child.process.kill("SIGTERM"), this.#program.limits.endMs);
  }
}

/**
 * Returns the Worker's message about an invalid variable: such a Worker never becomes ready.
 * @param {string} body
 * @returns {string | undefined}
 */
function configurationErrorIn(body) {
  try {
    const { message } = JSON.parse(body).error;
    return /^BERTH_[A-Z_]+ must be /.test(message) ? message : undefined;
  } catch {
    return undefined;
  }
}

/**
 * @param {WorkerOptions} options
 * @param {Record<string, string>} bindings  the values of its text bindings
 */
export function prepareWorkerd({ host, port, data }, bindings) {
  // A copy, so that a build does not change what a running server serves, and a restart serves the same.
  copyFileSync(paths.worker, join(data, "worker.js"));
  const dashboard = join(data, "dashboard");
  rmSync(dashboard, { recursive: true, force: true });
  cpSync(paths.dashboard, dashboard, { recursive: true });
  const config = join(data, "workerd.capnp");
  writeFileSync(config, workerdConfig({ host, port, dashboard }));
  return new WorkerProcess(
    {
      name: "workerd",
      limits: workerdLimits,
      listenStream: (child) =>
        /** @type {import("node:stream").Readable} */ (child.process.stdio[3]),
      urlIn: (line) => {
        const message = JSON.parse(line);
        if (message.event !== "listen" || message.socket !== "http") return;
        return `http://${formatAddress(host, message.port)}`;
      },
      spawn: (listenPort) =>
        new Child("workerd", data, {
          // The kernel ends it together with the launcher, even if that is killed.
          program: "setpriv",
          args: [
            ...["--pdeathsig", "KILL", "--", tools.workerd, "serve", config],
            ...["--socket-addr", `http=${formatAddress(host, listenPort)}`],
            ...["--directory-path", `objects=${join(data, "objects")}`, "--control-fd", "3"],
          ],
          env: { ...bindings, TZ: "UTC" },
          control: true,
        }),
    },
    port,
  );
}

/**
 * Prepares `wrangler dev`, whose output is shown in the terminal.
 * @param {WorkerOptions} options
 * @param {Record<string, string>} bindings
 */
export function prepareWranglerDev({ host, port, data }, bindings) {
  // Not passed as `--var`, because every user of the machine can read arguments.
  const secrets = join(data, "bindings.env");
  const lines = Object.entries(bindings).map(([name, value]) => `${name}="${value}"\n`);
  writeFileSync(secrets, lines.join(""), { mode: 0o600 });
  /** @param {number} listenPort */
  const spawn = (listenPort) => {
    const child = new Child("wrangler", data, {
      program: "setpriv",
      args: [
        ...["--pdeathsig", "TERM", "--", tools.node, tools.wrangler, "dev"],
        ...["--ip", host, "--port", String(listenPort), "--inspector-port", "0"],
        ...["--env-file", secrets, "--persist-to", join(data, "objects")],
        // The embedded engine runs the sandboxes, so no Docker is needed.
        ...["--enable-containers=false", "--show-interactive-dev-session=false"],
      ],
      cwd: root,
      env: {
        PATH: process.env.PATH ?? "",
        HOME: process.env.HOME ?? "/",
        WRANGLER_SEND_METRICS: "false",
        WRANGLER_HIDE_BANNER: "true",
        WRANGLER_LOG_PATH: join(data, "logs"),
        // Skips a lookup at the vendor that a local server does not need.
        CLOUDFLARE_CF_FETCH_ENABLED: "false",
        NO_COLOR: "1",
      },
    });
    child.process.stdout?.on("data", (chunk) => process.stderr.write(chunk));
    child.process.stderr?.on("data", (chunk) => process.stderr.write(chunk));
    // wrangler runs in processes of its own below this one; after a kill they would keep the port.
    child.ended.then(() => child.kill());
    return child;
  };
  return new WorkerProcess(
    {
      ...{ name: "wrangler", limits: wranglerLimits, spawn },
      listenStream: (child) => child.process.stdout,
      urlIn: (line) => /Ready on (http:\/\/\S+)/.exec(line)?.[1],
    },
    port,
  );
}
