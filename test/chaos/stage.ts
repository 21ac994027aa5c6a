/**
 * Owns the server under test: its small data folder, its start and every new start after its end, and the one address
 * that clients know. Does not own what is done to it (faults/).
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { alive, naming, type Seen } from "../system/processes.ts";
import { type Server, startServer } from "../system/server.ts";
import { until } from "../system/until.ts";
import { Relay } from "./relay.ts";

const diskBytes = 768 * 1024 * 1024;
const endsWithinMs = 60_000;
const loggedCharsMax = 2_000;
/** A new start may meet what is left of the old one, or a full disk. */
const startTries = 20;
const startAgainAfterMs = 1_000;

export class Stage {
  readonly relay: Relay;
  readonly data: string;
  /** Whether the data folder has a disk of its own, which may be filled. */
  readonly hasDisk: boolean;
  readonly #folder: string;
  #server: Server | undefined;
  #isEnding = false;
  #serving: Promise<void> = Promise.resolve();
  /** Why it could not be started again. */
  broken: string | undefined;
  starts = 0;

  static async open(): Promise<Stage> {
    const folder = mkdtempSync(join(tmpdir(), "berth-chaos-"));
    const stage = new Stage(folder, mounted(folder), await Relay.open());
    try {
      stage.#serving = stage.#serve(await stage.#start());
    } catch (thrown) {
      await stage.close();
      throw thrown;
    }
    return stage;
  }

  private constructor(folder: string, hasDisk: boolean, relay: Relay) {
    this.#folder = folder;
    this.data = join(folder, "data");
    this.hasDisk = hasDisk;
    this.relay = relay;
    mkdirSync(this.data);
  }

  /** Undefined while there is none. */
  get server(): Server | undefined {
    return this.#server;
  }

  get key(): string {
    return readFileSync(join(this.data, "key"), "utf8").trim();
  }

  /** Everything below the server that runs now. */
  processes(): Seen[] {
    return this.#server?.processes() ?? [];
  }

  /** The lines of its logs that hold the text; what found no room on a full disk is lost. */
  logged(text: string): string[] {
    const logs = join(this.data, "logs");
    return readdirSync(logs)
      .flatMap((name) => readFileSync(join(logs, name), "utf8").split("\n"))
      .filter((line) => line.includes(text))
      .map((line) => line.slice(0, loggedCharsMax));
  }

  /** Ends it in order; what is left of it then, in words. */
  async end(): Promise<string[]> {
    this.#isEnding = true;
    const tree = this.processes();
    const strays: string[] = [];
    const server = this.#server;
    if (server !== undefined) {
      await server.stop().catch((thrown) => strays.push(`the server: ${thrown.message}`));
    }
    await this.#serving;
    await until("all processes are gone", () => alive(tree).length === 0, endsWithinMs).catch(
      () => {},
    );
    const left = new Map([...alive(tree), ...naming(this.data)].map((seen) => [seen.pid, seen]));
    for (const { pid, command } of left.values()) strays.push(`process ${pid}: ${command}`);
    const mounts = readFileSync("/proc/mounts", "utf8").split("\n");
    const below = mounts.filter((line) => line.includes(this.data));
    strays.push(...below.map((line) => `mount ${line.split(" ")[1]}`));
    const live = readdirSync(join(this.data, "engine/live"));
    return [...strays, ...live.map((id) => `the note of room ${id}`)];
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
    this.relay.lead(server.url);
    return server;
  }

  /** For each that ends a new one, until the end. */
  async #serve(first: Server): Promise<void> {
    for (let server = first; ; ) {
      const tree = server.processes();
      await server.launched.ended;
      this.relay.lead(undefined);
      if (this.#isEnding) return;
      const next = await this.#startAgain(tree);
      if (next === undefined) return;
      server = next;
    }
  }

  async #startAgain(before: Seen[]): Promise<Server | undefined> {
    let why = "";
    for (let tries = 0; tries < startTries && !this.#isEnding; tries += 1) {
      try {
        return await this.#start();
      } catch (thrown) {
        why = thrown instanceof Error ? thrown.message : String(thrown);
        await pause(startAgainAfterMs);
      }
    }
    const left = alive(before).map(({ pid, command }) => `${pid} ${command}`);
    if (!this.#isEnding) this.broken = `${why} (still alive: ${left.join("; ") || "nothing"})`;
    return undefined;
  }
}

function mounted(folder: string): boolean {
  try {
    const options = `size=${diskBytes},mode=755`;
    execFileSync("mount", ["-t", "tmpfs", "-o", options, "chaos", folder], { stdio: "ignore" });
    return true;
  } catch {
    // Nothing may be mounted here: there is no disk to fill then, which the report says.
    return false;
  }
}
