/**
 * A Berth of one machine that counts: the real Worker and objects in workerd, each class wrapped by count.js, over
 * the real engine.
 */
import { createHash, randomBytes } from "node:crypto";
import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Child } from "../../../container/launch/child.js";
import type { Engine } from "../../../container/launch/engine.js";
import { paths, tools } from "../../../container/launch/paths.js";
import { readWranglerToml, workerdConfig } from "../../../container/launch/worker-config.js";
import { startEngine } from "../direct.ts";
import type { Bench } from "../figure.ts";
import { Http } from "../http.ts";
import { cpuSeconds, treeOf } from "../processes.ts";
import type { Counts } from "./count.js";

const listenTimeoutMs = 30_000;
const endTimeoutMs = 1_500;
/** Counts that do not change for this long are final: background work has ended. */
const idleMs = 250;
const idleLimitMs = 20_000;

/** By kind of object; `worker` and `log` have one number each. */
export type Counted = Record<string, Counts>;

type CountReport = { kinds: Counted; databaseBytes: Record<string, number> };

export class CountingBerth {
  readonly #engine: Engine;
  readonly #workerd: Child;
  readonly http: Http;

  static async start(bench: Bench): Promise<CountingBerth> {
    const { engine, data } = await startEngine(bench);
    const key = randomBytes(32).toString("base64url");
    const workerd = startWorkerd(data, {
      BERTH_API_KEYS: `local:${createHash("sha256").update(key).digest("hex")}`,
      BERTH_SECRET: randomBytes(32).toString("base64url"),
      BERTH_ORIGINS: "",
      BERTH_ENGINE_URL: engine.url,
      BERTH_ENGINE_SECRET: engine.secret,
    });
    bench.closes(() => workerd.end(() => workerd.process.kill("SIGTERM"), endTimeoutMs));
    const control = workerd.process.stdio[3] as NodeJS.ReadableStream;
    const port = await workerd.firstLine(control as never, portIn, listenTimeoutMs);
    if (port === undefined) {
      throw new Error(`The counting server did not start: ${workerd.log.tail(3)}`);
    }
    const http = new Http(`http://127.0.0.1:${port}`, { authorization: `Bearer ${key}` });
    return new CountingBerth(engine, workerd, http);
  }

  private constructor(engine: Engine, workerd: Child, http: Http) {
    this.#engine = engine;
    this.#workerd = workerd;
    this.http = http;
  }

  /** The number of processes in running sandboxes. */
  sandboxProcesses(): number {
    return treeOf(this.#engine.child?.pid ?? 0).length - 1;
  }

  /** The processor time of workerd so far. */
  processorMs(): number {
    return (cpuSeconds([this.#workerd.pid]).get(this.#workerd.pid) ?? 0) * 1000;
  }

  /** Returns the counts since the last call, once no more work is running. */
  async counted(): Promise<Counted> {
    const limit = performance.now() + idleLimitMs;
    let before = "";
    for (;;) {
      const text = await this.http.ok("GET", "/counted");
      if (text === before) break;
      if (performance.now() > limit) throw new Error(`the counts keep changing: ${text}`);
      before = text;
      await sleep(idleMs);
    }
    return (await this.http.json<CountReport>("GET", "/counted?reset")).kinds;
  }

  async databaseBytes(): Promise<Record<string, number>> {
    return (await this.http.json<CountReport>("GET", "/counted")).databaseBytes;
  }
}

function startWorkerd(data: string, secrets: Record<string, string>): Child {
  const { objects } = readWranglerToml();
  copyFileSync(paths.worker, join(data, "berth.js"));
  copyFileSync(join(paths.root, "test/bench/counting/count.js"), join(data, "count.js"));
  const classes = objects.map(
    ({ className }) => `export const ${className} = counted("${className}", berth.${className});`,
  );
  writeFileSync(
    join(data, "worker.js"),
    `import * as berth from "berth.js";
import { counted, countedWorker } from "count.js";
export * from "berth.js";
export default countedWorker(berth.default);
${classes.join("\n")}
`,
  );
  const modules = ["berth", "count"].map(
    (name) => `( name = "${name}.js", esModule = embed "${name}.js" ),`,
  );
  const embeddedWorker = 'esModule = embed "worker.js" )';
  const config = workerdConfig({ host: "127.0.0.1", port: 0 }).replace(
    embeddedWorker,
    `${embeddedWorker}, ${modules.join(" ")}`,
  );
  writeFileSync(join(data, "workerd.capnp"), config);
  const child = new Child("workerd", data, {
    program: "setpriv",
    args: [
      ...["--pdeathsig", "KILL", "--", tools.workerd, "serve", join(data, "workerd.capnp")],
      ...["--directory-path", `objects=${join(data, "objects")}`, "--control-fd", "3"],
    ],
    env: { ...secrets, TZ: "UTC" },
    control: true,
  });
  child.logOutput();
  return child;
}

function portIn(line: string): number | undefined {
  const message = JSON.parse(line) as { event: string; socket?: string; port?: number };
  return message.event === "listen" && message.socket === "http" ? message.port : undefined;
}
