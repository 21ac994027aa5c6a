/**
 * Servers of one test file: they end with it, also after a failure, and leave nothing behind. See shared-server.ts for
 * tests that need no server of their own.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect } from "vitest";
import { until } from "../until.ts";
import { alive, type ProcessInfo, processesNaming } from "./processes.ts";
import {
  type RecordedProcess,
  type RunningServer,
  type Server,
  type StartOptions,
  startServer,
} from "./server.ts";

/** A server for all tests of a file. Call it where the file begins. */
export async function startFileServer(options: StartOptions = {}): Promise<Server> {
  const server = await startServer(options);
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    expect(processesNaming(server.data)).toEqual([]);
  });
  return server;
}

/** The rounds of a test of kills: a few in every run, more on request. */
export const killRounds = Number(process.env.BERTH_KILL_ROUNDS ?? 4);

export type Victim = "server" | "workerd" | "engine";

/** Servers that run one after another with the same data. Make it where a file or a `describe` begins. */
export class Restarts {
  readonly data = mkdtempSync(join(tmpdir(), "berth-restarts-"));
  #running: Server | undefined;

  constructor() {
    afterAll(async () => {
      await this.#running?.[Symbol.asyncDispose]();
      rmSync(this.data, { recursive: true, force: true });
    });
  }

  async start(): Promise<Server> {
    this.#running = await startServer({ data: this.data });
    return this.#running;
  }

  /** kill -9. Waits for the process that the server starts in its place, or starts the next server. */
  async kill(server: Server, victim: Victim): Promise<Server> {
    if (victim !== "server") {
      await (victim === "engine" ? replaceEngine : replaceWorkerd)(server);
      return server;
    }
    const tree = server.processes();
    killServer(server);
    await server.ended();
    const next = await this.start();
    expect(alive(tree)).toEqual([]);
    return next;
  }

  /** Stops the server, which must leave neither a process nor a mount. */
  async stop(server: Server): Promise<void> {
    const tree = server.processes();
    await server.stop();
    this.#running = undefined;
    await expectNothingLeft(server, tree);
  }
}

/** kill -9 of all parts of the server. */
export function killServer({ launcher, workerd, engine }: Server): void {
  for (const { pid } of [launcher, workerd, engine]) process.kill(pid, "SIGKILL");
}

/** kill -9 of workerd; the server starts another, which serves at the same address. */
export async function replaceWorkerd(server: RunningServer): Promise<void> {
  const { pid } = server.workerd;
  process.kill(pid, "SIGKILL");
  const isAnother = (recorded: RecordedProcess) =>
    recorded.name === "workerd" && recorded.pid !== pid;
  await until("workerd is another one", () => server.processRecord().some(isAnother));
  await until("it serves", async () => {
    const response = await fetch(`${server.url}/health`).catch(() => undefined);
    await response?.body?.cancel();
    return response?.status === 200;
  });
}

/** kill -9 of the engine; the server starts another. */
export async function replaceEngine(server: RunningServer): Promise<void> {
  const { pid } = server.engine;
  process.kill(pid, "SIGKILL");
  await until("the engine is another one", () =>
    server
      .processes()
      .some((seen) => seen.pid !== pid && seen.command.includes("container/engine/main.ts")),
  );
}

/** `tree`: the processes of the server before it ended. */
export async function expectNothingLeft(
  { data }: { data: string },
  tree: ProcessInfo[],
): Promise<void> {
  await until("every process is gone", () => alive(tree).length === 0);
  expect(processesNaming(data)).toEqual([]);
  expect(readFileSync("/proc/mounts", "utf8")).not.toContain(data);
}
