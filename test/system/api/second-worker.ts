/**
 * Runs a second Worker next to a real Berth: workerd with both, the real engine, and a caller that binds the API.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { paths, tools } from "../../../container/launch/paths.js";
import { workerdConfig } from "../../../container/launch/worker-config.js";
import { newData, removeData, startEngine } from "../../engine/test-engine.ts";

const listensWithinMs = 30_000;

/** Calls `steps` one after the other on the binding, each with the arguments that were sent. */
const callerSource = `
export default {
  async fetch(request, env) {
    const { binding, steps } = await request.json();
    try {
      let value = env[binding];
      for (const [name, args] of steps) value = value[name](...args);
      return Response.json({ value: await value });
    } catch (error) {
      return Response.json({ thrown: { name: error.name, message: error.message, ...error } });
    }
  },
};`;

export type Step = [method: string, args: unknown[]];
export type Outcome = { value?: Record<string, unknown>; thrown?: Record<string, unknown> };

export class SecondWorker implements AsyncDisposable {
  readonly #url: string;
  readonly #end: () => Promise<void>;

  constructor(url: string, end: () => Promise<void>) {
    this.#url = url;
    this.#end = end;
  }

  call(binding: "BERTH" | "NOBODY", ...steps: Step[]): Promise<Outcome> {
    return this.send({ binding, steps });
  }

  async send(body: Record<string, unknown>): Promise<Outcome> {
    const response = await fetch(this.#url, { method: "POST", body: JSON.stringify(body) });
    return (await response.json()) as Outcome;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end();
  }
}

/** `source` is the second Worker; by default one that makes the calls it is sent. */
export async function startSecondWorker(source = callerSource): Promise<SecondWorker> {
  const as = process.getuid?.() === 0 ? "root" : "not root";
  const data = newData(as);
  const engine = await startEngine(as, { data });
  const folder = mkdtempSync(join(tmpdir(), "berth-second-worker-"));
  mkdirSync(join(folder, "objects"));
  copyFileSync(paths.worker, join(folder, "worker.js"));
  writeFileSync(join(folder, "caller.js"), source);
  const config = join(folder, "workerd.capnp");
  writeFileSync(config, withCaller(workerdConfig({ host: "127.0.0.1", port: 0 })));
  const child = spawn(
    tools.workerd,
    [
      ...["serve", config, "--control-fd", "3"],
      ...["--directory-path", `objects=${join(folder, "objects")}`],
    ],
    {
      // Its logs are no data of the operator.
      stdio: ["ignore", 2, 2, "pipe"],
      env: {
        BERTH_API_KEYS: "",
        BERTH_SECRET: "the secret of a test, which guards nothing at all",
        BERTH_ENGINE_URL: engine.baseUrl,
        BERTH_ENGINE_SECRET: engine.secret,
      },
    },
  );
  const end = async () => {
    const closed = new Promise((resolve) => child.once("close", resolve));
    child.kill("SIGKILL");
    await closed;
    await engine.stop();
    removeData(data);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    return new SecondWorker(`http://127.0.0.1:${await portOf(child)}`, end);
  } catch (error) {
    await end();
    throw error;
  }
}

function withCaller(config: string): string {
  const bound = (name: string, props: object) =>
    `( name = "${name}", service = ( name = "berth", entrypoint = "BerthApi", props = ( json = ${JSON.stringify(
      JSON.stringify(props),
    )} ) ) ),`;
  return `${config
    .replace('http = (), service = "berth"', 'http = (), service = "caller"')
    .replace("services = [", 'services = [\n    ( name = "caller", worker = .caller ),')}
const caller :Workerd.Worker = (
  modules = [ ( name = "caller.js", esModule = embed "caller.js" ) ],
  compatibilityDate = "2026-10-01",
  bindings = [
    ${bound("BERTH", { tenant: "local" })}
    ${bound("NOBODY", {})}
  ],
);
`;
}

function portOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("workerd did not listen")), listensWithinMs);
    child.once("exit", (code) => reject(new Error(`workerd ended with ${code}`)));
    createInterface({ input: child.stdio[3] as Readable }).on("line", (line) => {
      const message = JSON.parse(line) as { event: string; port?: number };
      if (message.event !== "listen" || message.port === undefined) return;
      clearTimeout(timer);
      resolve(message.port);
    });
  });
}
