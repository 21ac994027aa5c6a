/** A sandbox whose /workspace is a folder of this machine: runs the scripts of a sync with the same sh and git. */
import { spawnSync } from "node:child_process";
import { createReadStream, createWriteStream, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Sandbox as SandboxHandle } from "../../../src/client/index.ts";
import type { ExecInput } from "../../../src/protocol/exec.ts";

const outputBytesMax = 64 * 1024 * 1024;

export class FolderSandbox implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "berth-folder-"));
  readonly workspace = join(this.folder, "workspace");
  calls = 0;

  constructor() {
    mkdirSync(this.workspace);
  }

  get handle(): SandboxHandle {
    const { exec, writeFile, readFile } = this;
    const bound = { exec: exec.bind(this), writeFile: writeFile.bind(this) };
    return { id: "a".repeat(24), ...bound, readFile: readFile.bind(this) } as never;
  }

  /** Runs a command in the workspace, as `berth attach` would. */
  run(command: string): string {
    const env = { PATH: process.env.PATH, HOME: this.folder, GIT_CONFIG_NOSYSTEM: "1" };
    const done = spawnSync("sh", ["-ec", command], { cwd: this.workspace, env, encoding: "utf8" });
    if (done.status !== 0) throw new Error(`${command}: ${done.stderr}`);
    return done.stdout;
  }

  async exec({ argv = [], stdin = "" }: ExecInput & { stdin?: string }): Promise<unknown> {
    this.calls += 1;
    const [program = "", ...args] = argv.map((arg) => this.#toPath(arg));
    const env = { PATH: process.env.PATH, HOME: this.folder };
    const input = Buffer.from(stdin, "base64");
    const options = { cwd: "/", env, input, maxBuffer: outputBytesMax };
    const { status, signal, stdout, stderr } = spawnSync(program, args, options);
    return {
      exitCode: status,
      signal,
      stdout: stdout.toString("base64"),
      stderr: stderr.toString("base64"),
      truncated: false,
      timedOut: false,
    };
  }

  async writeFile(path: string, { stream }: { stream: AsyncIterable<Uint8Array> }): Promise<void> {
    await pipeline(Readable.from(stream), createWriteStream(this.#toPath(path)));
  }

  async readFile(path: string): Promise<{ body: AsyncIterable<Uint8Array> }> {
    return { body: createReadStream(this.#toPath(path)) };
  }

  #toPath(arg: string): string {
    return arg.startsWith("/workspace") ? `${this.workspace}${arg.slice(10)}` : arg;
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
