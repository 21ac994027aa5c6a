/**
 * Owns wrangler dev as a front: its start until it listens, its words in the terminal, its end.
 * Does not own what it serves.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { answers } from "./answers.js";
import { Child } from "./child.js";
import { root, tools } from "./places.js";
import { Refusal } from "./say.js";

const listensWithinMs = 60_000;
const endsWithinMs = 5_000;

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
    // Not as --var: arguments can be read by every user of the machine.
    const secrets = join(data, "bindings.env");
    const lines = Object.entries(bindings).map(([name, value]) => `${name}="${value}"\n`);
    writeFileSync(secrets, lines.join(""), { mode: 0o600 });
    const child = new Child("wrangler", data, {
      program: "setpriv",
      args: [
        ...["--pdeathsig", "TERM", "--", tools.node, tools.wrangler, "dev"],
        ...["--ip", host, "--port", String(port), "--inspector-port", "0"],
        ...["--env-file", secrets, "--persist-to", join(data, "objects")],
        // The sandboxes are the embedded engine's; no Docker is asked for.
        ...["--enable-containers=false", "--show-interactive-dev-session=false"],
      ],
      cwd: root,
      env: {
        PATH: process.env.PATH ?? "",
        HOME: process.env.HOME ?? "/",
        WRANGLER_SEND_METRICS: "false",
        WRANGLER_HIDE_BANNER: "true",
        WRANGLER_LOG_PATH: join(data, "logs"),
        // A look-up at the vendor that a machine of one needs not.
        CLOUDFLARE_CF_FETCH_ENABLED: "false",
        NO_COLOR: "1",
      },
    });
    child.logOutput();
    child.process.stdout?.on("data", (chunk) => process.stderr.write(chunk));
    child.process.stderr?.on("data", (chunk) => process.stderr.write(chunk));
    const url = await child.firstLine(child.process.stdout, urlIn, listensWithinMs);
    if (url === undefined) {
      child.kill();
      throw new Refusal(`wrangler dev did not start; see ${child.log.path}`);
    }
    return new WranglerDev(child, url);
  }

  answers() {
    return answers(this.url, this.child.log.path);
  }

  end() {
    return this.child.end(() => this.child.process.kill("SIGTERM"), endsWithinMs);
  }
}

/** @param {string} line */
function urlIn(line) {
  return /Ready on (http:\/\/\S+)/.exec(line)?.[1];
}
