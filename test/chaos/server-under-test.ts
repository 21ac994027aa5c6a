/**
 * The server under test: its small data folder, its start and every restart, and the constant address that clients
 * use.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { alive, type ProcessInfo, processesNaming } from "../system/processes.ts";
import { type Server, startServer } from "../system/server.ts";
import { until } from "../until.ts";
import { Relay } from "./relay.ts";

const diskBytes = 768 * 1024 * 1024;
const endTimeoutMs = 60_000;
const loggedCharsMax = 2_000;
/** A restart may find leftovers of the old server, or a full disk. */
const startTries = 20;
const restartPauseMs = 1_000;

/** The promised end after more kills of one part than are survived within a minute. */
const endsTooOften = /^berth: .* keeps ending\. /m;

export class ServerUnderTest {
  readonly relay: Relay;
  readonly data: string;
  /** Whether the data folder has its own disk, which can be filled. */
  readonly hasDisk: boolean;
  readonly #folder: string;
  #server: Server | undefined;
  #isEnding = false;
  /** Whether a fault has killed what the server cannot live without. */
  #isEndExpected = false;
  #serving: Promise<void> = Promise.resolve();
  /** Why it could not be restarted. */
  broken: string | undefined;
  /** Ends of the server that no fault explains. */
  readonly unexpectedEnds: string[] = [];
  starts = 0;

  static async open(): Promise<ServerUnderTest> {
    const folder = mkdtempSync(join(tmpdir(), "berth-chaos-"));
    const target = new ServerUnderTest(folder, mountDisk(folder), await Relay.open());
    try {
      target.#serving = target.#keepServing(await target.#start());
    } catch (thrown) {
      await target.close();
      throw thrown;
    }
    return target;
  }

  private constructor(folder: string, hasDisk: boolean, relay: Relay) {
    this.#folder = folder;
    this.data = join(folder, "data");
    this.hasDisk = hasDisk;
    this.relay = relay;
    mkdirSync(this.data);
  }

  /** Undefined while none is running. */
  get server(): Server | undefined {
    return this.#server;
  }

  get key(): string {
    return readFileSync(join(this.data, "key"), "utf8").trim();
  }

  /** All processes of the running server. */
  processes(): ProcessInfo[] {
    return this.#server?.processes() ?? [];
  }

  /** Called by faults that kill the launcher; the server survives the death of any other part. */
  expectEnd(): void {
    this.#isEndExpected = true;
  }

  /** The log lines that contain the text; lines may be missing after a full disk. */
  logged(text: string): string[] {
    const logs = join(this.data, "logs");
    return readdirSync(logs)
      .flatMap((name) => readFileSync(join(logs, name), "utf8").split("\n"))
      .filter((line) => line.includes(text))
      .map((line) => line.slice(0, loggedCharsMax));
  }

  /** Ends it in order and describes what is left. */
  async end(): Promise<string[]> {
    this.#isEnding = true;
    const tree = this.processes();
    const leftovers: string[] = [];
    const server = this.#server;
    if (server !== undefined) {
      await server.stop().catch((thrown) => leftovers.push(`the server: ${thrown.message}`));
    }
    await this.#serving;
    await until("all processes are gone", () => alive(tree).length === 0, endTimeoutMs).catch(
      () => {},
    );
    const left = new Map(
      [...alive(tree), ...processesNaming(this.data)].map((seen) => [seen.pid, seen]),
    );
    for (const { pid, command } of left.values()) leftovers.push(`process ${pid}: ${command}`);
    const mounts = readFileSync("/proc/mounts", "utf8").split("\n");
    const below = mounts.filter((line) => line.includes(this.data));
    leftovers.push(...below.map((line) => `mount ${line.split(" ")[1]}`));
    const live = readdirSync(join(this.data, "engine/live"));
    return [...leftovers, ...live.map((id) => `the process record of jail ${id}`)];
  }

  async close(): Promise<void> {
    if (!this.#isEnding) await this.end().catch(() => []);
    await this.relay.close();
    if (this.hasDisk) execFileSync("umount", ["--lazy", this.#folder]);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #start(): Promise<Server> {
    const server = await startServer({ data: this.data });
    this.#server = server;
    this.starts += 1;
    this.relay.setServer(server.url);
    return server;
  }

  /** Restarts the server whenever it ends, until the end of the run. */
  async #keepServing(first: Server): Promise<void> {
    for (let server = first; ; ) {
      const tree = server.processes();
      const { stderr } = await server.launched.ended;
      this.relay.setServer(undefined);
      if (this.#isEnding) return;
      if (!this.#isEndExpected && !endsTooOften.test(stderr))
        this.unexpectedEnds.push(stderr.trimEnd().split("\n").at(-1) ?? "");
      this.#isEndExpected = false;
      const next = await this.#restart(tree);
      if (next === undefined) return;
      server = next;
    }
  }

  async #restart(before: ProcessInfo[]): Promise<Server | undefined> {
    let why = "";
    for (let tries = 0; tries < startTries && !this.#isEnding; tries += 1) {
      try {
        return await this.#start();
      } catch (thrown) {
        why = thrown instanceof Error ? thrown.message : String(thrown);
        await pause(restartPauseMs);
      }
    }
    const left = alive(before).map(({ pid, command }) => `${pid} ${command}`);
    if (!this.#isEnding) this.broken = `${why} (still alive: ${left.join("; ") || "nothing"})`;
    return undefined;
  }
}

function mountDisk(folder: string): boolean {
  try {
    const options = `size=${diskBytes},mode=755`;
    execFileSync("mount", ["-t", "tmpfs", "-o", options, "chaos", folder], { stdio: "ignore" });
    return true;
  } catch {
    // Nothing can be mounted here, so the disk cannot be filled; the report says so.
    return false;
  }
}
