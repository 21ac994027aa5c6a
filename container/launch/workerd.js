/**
 * Runs workerd: writes its configuration, starts it until it listens, and ends it.
 */
import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatAddress } from "./address.js";
import { Child } from "./child.js";
import { paths, tools } from "./paths.js";
import { UserError } from "./program.js";
import { waitUntilReady } from "./wait-until-ready.js";
import { workerdConfig } from "./worker-config.js";

const listenTimeoutMs = 30_000;
/** After that it is killed; its storage is a journal, so no acknowledged write is lost. */
const endTimeoutMs = 1_500;

export class Workerd {
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
   * @param {Record<string, string>} secrets  the values of its text bindings
   */
  static async start({ host, port, data }, secrets) {
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
      env: { ...secrets, TZ: "UTC" },
      control: true,
    });
    child.logOutput();
    const control = /** @type {import("node:stream").Readable} */ (child.process.stdio[3]);
    const listeningPort = await child.firstLine(control, portIn, listenTimeoutMs);
    if (listeningPort === undefined) {
      child.kill();
      throw new UserError(
        `workerd did not start. The last line of ${child.log.path}: ${child.log.tail(1)}`,
      );
    }
    return new Workerd(child, `http://${formatAddress(host, listeningPort)}`);
  }

  waitUntilReady() {
    return waitUntilReady(this.url, this.child.log.path);
  }

  end() {
    return this.child.end(() => this.child.process.kill("SIGTERM"), endTimeoutMs);
  }
}

/** @param {string} line  a message on workerd's control descriptor */
function portIn(line) {
  const message = JSON.parse(line);
  return message.event === "listen" && message.socket === "http" ? message.port : undefined;
}
