/** An sshd on loopback with its own keys, and clients for its commands, terminal and file transfers. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { Bench } from "../figure.ts";
import { piecesOf } from "../http.ts";
import { freePort, startProgram } from "./program.ts";

const privileged = "/run/sshd";
const endMs = 10_000;

export class Ssh {
  readonly #args: string[];
  readonly #folder: string;

  static async start(bench: Bench, program: string): Promise<Ssh> {
    const folder = bench.folder();
    if (process.getuid?.() === 0 && !existsSync(privileged)) {
      mkdirSync(privileged, { mode: 0o755 });
      bench.closes(() => rmdirSync(privileged));
    }
    for (const name of ["host", "user"]) {
      await waitForExit(
        spawn("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", join(folder, name)]),
      );
    }
    const port = await freePort();
    const config = [
      "UsePAM no",
      "StrictModes no",
      "PasswordAuthentication no",
      "PermitRootLogin prohibit-password",
      "MaxSessions 64",
      `ListenAddress 127.0.0.1:${port}`,
      `HostKey ${join(folder, "host")}`,
      `AuthorizedKeysFile ${join(folder, "user.pub")}`,
      `PidFile ${join(folder, "pid")}`,
    ];
    writeFileSync(join(folder, "sshd"), `${config.join("\n")}\n`);
    const ssh = new Ssh(folder, port);
    await startProgram(bench, program, ["-D", "-e", "-f", join(folder, "sshd")], async () => {
      await ssh.run("true");
    });
    const master = ["-N", "-o", "ControlMaster=yes", ...ssh.#sharedOptions, ...ssh.#args];
    await startProgram(bench, "ssh", master, async () => {
      await waitForExit(
        spawn("ssh", ["-O", "check", ...ssh.#sharedOptions, ...ssh.#args], { stdio: "ignore" }),
      );
    });
    return ssh;
  }

  private constructor(folder: string, port: number) {
    this.#folder = folder;
    this.#args = [
      ...["-F", "none", "-q", "-p", String(port), "-i", join(folder, "user")],
      ...["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"],
      ...["-o", "BatchMode=yes", "-l", userInfo().username, "127.0.0.1"],
    ];
  }

  get folder(): string {
    return this.#folder;
  }

  /** Uses a new connection, unless `shared`. */
  run(command: string, shared = false): Promise<void> {
    const options = shared ? this.#sharedOptions : [];
    return waitForExit(spawn("ssh", [...options, ...this.#args, command], { stdio: "ignore" }));
  }

  /** Uses a new connection: a shared one serves no terminal to a client without one. */
  terminal(command: string): ChildProcess {
    return spawn("ssh", ["-tt", ...this.#args, command], {
      stdio: ["pipe", "pipe", "ignore"],
    });
  }

  async upload(path: string, bytes: number): Promise<void> {
    const child = spawn("ssh", [...this.#sharedOptions, ...this.#args, `cat > ${path}`], {
      stdio: ["pipe", "ignore", "ignore"],
    });
    await Promise.all([pipeline(piecesOf(bytes), child.stdin), waitForExit(child)]);
  }

  /** Requires that this many bytes arrive. */
  async download(path: string, expectedBytes: number): Promise<void> {
    const child = spawn("ssh", [...this.#sharedOptions, ...this.#args, `cat ${path}`], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    let bytes = 0;
    child.stdout.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
    });
    await waitForExit(child);
    if (bytes !== expectedBytes) throw new Error(`received ${bytes} of ${expectedBytes} bytes`);
  }

  get #sharedOptions(): string[] {
    return ["-o", `ControlPath=${join(this.#folder, "control")}`];
  }
}

function waitForExit(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => child.kill("SIGKILL"), 6 * endMs);
    child.once("error", reject);
    child.once("close", (code) => {
      clearTimeout(timer);
      if (code === 0) resolve();
      else reject(new Error(`${child.spawnargs.join(" ")} ended with ${code}`));
    });
  });
}
