/**
 * The process that serves the Worker: workerd for `npm start`, `wrangler dev` for `npm run dev`.
 */
import { copyFileSync, writeFileSync } from "node:fs";
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

export class WorkerProcess {
  /**
   * @param {Child} child
   * @param {string} url
   * @param {number} endTimeoutMs
   */
  constructor(child, url, endTimeoutMs) {
    this.child = child;
    this.url = url;
    this.endTimeoutMs = endTimeoutMs;
  }

  /** Waits until the Worker responds. Fails at once if one of its variables is invalid. */
  async waitUntilReady() {
    const url = new URL("/health", this.url);
    url.hostname = localAddressOf(url.hostname.replace(/^\[|\]$/g, ""));
    const deadline = Date.now() + readyTimeoutMs;
    let last = "nothing";
    while (Date.now() < deadline) {
      try {
        const response = await fetch(url, { signal: AbortSignal.timeout(5_000) });
        const body = await response.text();
        if (response.status === 200) return;
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
      `Berth does not respond at ${url.href} (${last}). See ${this.child.log.path}.`,
    );
  }

  end() {
    return this.child.end(() => this.child.process.kill("SIGTERM"), this.endTimeoutMs);
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
 * Starts workerd and returns once it listens.
 * @param {WorkerOptions} options
 * @param {Record<string, string>} bindings  the values of its text bindings
 */
export async function startWorkerd({ host, port, data }, bindings) {
  // A copy, so that a build does not change what a running server serves.
  copyFileSync(paths.worker, join(data, "worker.js"));
  const config = join(data, "workerd.capnp");
  writeFileSync(config, workerdConfig({ host, port }));
  const child = new Child("workerd", data, {
    // The kernel ends it together with the launcher, even if that is killed.
    program: "setpriv",
    args: [
      ...["--pdeathsig", "KILL", "--", tools.workerd, "serve", config],
      ...["--directory-path", `objects=${join(data, "objects")}`, "--control-fd", "3"],
    ],
    env: { ...bindings, TZ: "UTC" },
    control: true,
  });
  child.logOutput();
  const control = /** @type {import("node:stream").Readable} */ (child.process.stdio[3]);
  const listeningPort = await child.firstLine(control, workerdPortIn, workerdLimits.listenMs);
  if (listeningPort === undefined) {
    child.kill();
    throw new UserError(
      `workerd did not start. The last line of ${child.log.path}: ${child.log.tail(1)}`,
    );
  }
  const url = `http://${formatAddress(host, listeningPort)}`;
  return new WorkerProcess(child, url, workerdLimits.endMs);
}

/** @param {string} line  a message on workerd's control descriptor */
function workerdPortIn(line) {
  const message = JSON.parse(line);
  return message.event === "listen" && message.socket === "http" ? message.port : undefined;
}

/**
 * Starts `wrangler dev` and returns once it listens. Its output is shown in the terminal.
 * @param {WorkerOptions} options
 * @param {Record<string, string>} bindings
 */
export async function startWranglerDev({ host, port, data }, bindings) {
  // Not passed as `--var`, because every user of the machine can read arguments.
  const secrets = join(data, "bindings.env");
  const lines = Object.entries(bindings).map(([name, value]) => `${name}="${value}"\n`);
  writeFileSync(secrets, lines.join(""), { mode: 0o600 });
  const child = new Child("wrangler", data, {
    program: "setpriv",
    args: [
      ...["--pdeathsig", "TERM", "--", tools.node, tools.wrangler, "dev"],
      ...["--ip", host, "--port", String(port), "--inspector-port", "0"],
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
  child.logOutput();
  child.process.stdout?.on("data", (chunk) => process.stderr.write(chunk));
  child.process.stderr?.on("data", (chunk) => process.stderr.write(chunk));
  const url = await child.firstLine(child.process.stdout, wranglerUrlIn, wranglerLimits.listenMs);
  if (url === undefined) {
    child.kill();
    throw new UserError(`wrangler dev did not start. See ${child.log.path}.`);
  }
  return new WorkerProcess(child, url, wranglerLimits.endMs);
}

/** @param {string} line */
function wranglerUrlIn(line) {
  return /Ready on (http:\/\/\S+)/.exec(line)?.[1];
}
