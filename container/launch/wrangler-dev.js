/**
 * Serves the Worker by `wrangler dev`: starts it until it listens, shows its output in the terminal, and ends it.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Child } from "./child.js";
import { root, tools } from "./paths.js";
import { UserError } from "./program.js";
import { waitUntilReady } from "./wait-until-ready.js";

const listenTimeoutMs = 60_000;
const endTimeoutMs = 5_000;

export class WranglerDev {
  /**
   * @param {Child} child
   * @param {string} url
   */
  constructor(child, url) {
    this.child = child;
    this.url = url;
  }

  /**
   * @param {{ host: string, port: number, data: string }} options
   * @param {Record<string, string>} bindings
   */
  static async start({ host, port, data }, bindings) {
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
    const url = await child.firstLine(child.process.stdout, urlIn, listenTimeoutMs);
    if (url === undefined) {
      child.kill();
      throw new UserError(`wrangler dev did not start. See ${child.log.path}.`);
    }
    return new WranglerDev(child, url);
  }

  waitUntilReady() {
    return waitUntilReady(this.url, this.child.log.path);
  }

  end() {
    return this.child.end(() => this.child.process.kill("SIGTERM"), endTimeoutMs);
  }
}

/** @param {string} line */
function urlIn(line) {
  return /Ready on (http:\/\/\S+)/.exec(line)?.[1];
}
