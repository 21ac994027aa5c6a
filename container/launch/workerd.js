/**
 * Owns workerd: its config on disk, its start until it answers, its end.
 * Does not own what it serves.
 */
import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { written } from "./address.js";
import { answers } from "./answers.js";
import { Child } from "./child.js";
import { places, tools } from "./places.js";
import { Refusal } from "./say.js";
import { workerdConfig } from "./worker-config.js";

const listensWithinMs = 30_000;
/** Then it is killed: its storage is a journal, and nothing that it acknowledged is lost. */
const endsWithinMs = 1_500;

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
    // A copy: what a server runs stays what it was, whatever is built meanwhile.
    copyFileSync(places.worker, join(data, "worker.js"));
    const config = join(data, "workerd.capnp");
    writeFileSync(config, workerdConfig({ host, port }));
    const child = new Child("workerd", data, {
      // The kernel ends it with the launcher, even where that is killed.
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
    const listening = await child.firstLine(control, portIn, listensWithinMs);
    if (listening === undefined) {
      child.kill();
      throw new Refusal(`workerd did not start; ${child.log.path} ends with: ${child.log.tail(1)}`);
    }
    return new Workerd(child, `http://${written(host, listening)}`);
  }

  answers() {
    return answers(this.url, this.child.log.path);
  }

  end() {
    return this.child.end(() => this.child.process.kill("SIGTERM"), endsWithinMs);
  }
}

/** @param {string} line  a message of workerd's control descriptor */
function portIn(line) {
  const message = JSON.parse(line);
  return message.event === "listen" && message.socket === "http" ? message.port : undefined;
}
