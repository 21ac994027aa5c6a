/**
 * Owns a git checkout for the length of a test, with a home of its own: nothing of who runs the tests applies.
 * Names are bytes where that matters.
 */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { looking, type Seen, seenOf } from "./seen.ts";

export class Checkout implements Disposable {
  readonly folder: string;
  readonly root: string;

  constructor(root = "code", folder = realpathSync(mkdtempSync(join(tmpdir(), "berth-sync-")))) {
    this.folder = folder;
    this.root = join(folder, root);
    mkdirSync(this.root, { recursive: true });
  }

  /** A branch `main` with one commit. */
  static begun(files: Record<string, string> = { "a.txt": "a\n", "b/c.txt": "c\n" }): Checkout {
    const checkout = new Checkout();
    checkout.git("init", "-q", "-b", "main");
    for (const [name, content] of Object.entries(files)) checkout.write(name, content);
    checkout.commit("the first one");
    return checkout;
  }

  git(...args: string[]): string {
    return this.gitAt(this.root, ...args);
  }

  gitAt(cwd: string, ...args: string[]): string {
    const { status, stdout, stderr } = spawnSync("git", args, {
      cwd,
      env: this.env,
      maxBuffer: 1 << 28,
    });
    if (status !== 0) throw new Error(`git ${args.join(" ")}: ${stderr}`);
    return stdout.toString("latin1");
  }

  /** Of the owner: his settings, none of the machine's. */
  get env(): Record<string, string> {
    return {
      PATH: process.env.PATH ?? "",
      HOME: this.folder,
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_AUTHOR_NAME: "who",
      GIT_AUTHOR_EMAIL: "who@example.com",
      GIT_COMMITTER_NAME: "who",
      GIT_COMMITTER_EMAIL: "who@example.com",
    };
  }

  commit(message: string): void {
    this.git("add", "-A");
    this.git("commit", "-q", "--allow-empty", "-m", message);
  }

  at(name: string | Buffer): Buffer {
    return Buffer.concat([Buffer.from(`${this.root}/`), Buffer.from(name as string)]);
  }

  write(name: string | Buffer, content: string | Buffer, mode?: number): void {
    const path = this.at(name);
    mkdirSync(parent(path), { recursive: true });
    writeFileSync(path, content);
    if (mode !== undefined) chmodSync(path, mode);
  }

  link(name: string, target: string): void {
    mkdirSync(parent(this.at(name)), { recursive: true });
    symlinkSync(target, this.at(name));
  }

  read(name: string | Buffer): string {
    return readFileSync(this.at(name), "latin1");
  }

  has(name: string | Buffer): boolean {
    return lstatSync(this.at(name), { throwIfNoEntry: false }) !== undefined;
  }

  isFolder(name: string): boolean {
    return lstatSync(this.at(name), { throwIfNoEntry: false })?.isDirectory() ?? false;
  }

  remove(name: string | Buffer): void {
    rmSync(this.at(name), { recursive: true });
  }

  seen(): Seen {
    const { status, stdout, stderr } = spawnSync("python3", ["-c", looking, this.root], {
      env: this.env,
      maxBuffer: 1 << 28,
    });
    if (status !== 0) throw new Error(stderr.toString());
    return seenOf(stdout.toString());
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function parent(path: Buffer): Buffer {
  return path.subarray(0, path.lastIndexOf(0x2f));
}
