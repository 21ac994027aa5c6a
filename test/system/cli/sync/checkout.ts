/** A git checkout for one test, with a home of its own, so that no settings of the machine apply. */
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
import { type CheckoutView, inspectScript, parseView } from "./checkout-view.ts";

export class Checkout implements Disposable {
  readonly folder: string;
  readonly root: string;

  constructor(root = "code", folder = realpathSync(mkdtempSync(join(tmpdir(), "berth-sync-")))) {
    this.folder = folder;
    this.root = join(folder, root);
    mkdirSync(this.root, { recursive: true });
  }

  /** Creates a checkout with a branch `main` and one commit. */
  static begun(files: Record<string, string> = { "a.txt": "a\n", "b/c.txt": "c\n" }): Checkout {
    const checkout = new Checkout();
    checkout.git("init", "-q", "-b", "main");
    checkout.commit("the first one", files);
    return checkout;
  }

  git(...args: string[]): string {
    return this.gitAt(this.root, ...args);
  }

  /** Runs git; its exit code may report conflicts. */
  tryGit(...args: string[]): void {
    spawnSync("git", args, { cwd: this.root, env: this.env });
  }

  gitAt(cwd: string, ...args: string[]): string {
    const options = { cwd, env: this.env, maxBuffer: 1 << 28 };
    const { status, stdout, stderr } = spawnSync("git", args, options);
    if (status !== 0) throw new Error(`git ${args.join(" ")}: ${stderr}`);
    return stdout.toString("latin1");
  }

  /** The owner's environment, without settings of the machine. */
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

  /** Commits everything, after writing these files. */
  commit(message: string, files: Record<string, string | Buffer> = {}): void {
    for (const [name, content] of Object.entries(files)) this.write(name, content);
    this.git("add", "-A");
    this.git("commit", "-q", "--allow-empty", "-m", message);
  }

  path(name: string | Buffer): Buffer {
    return Buffer.concat([Buffer.from(`${this.root}/`), Buffer.from(name as string)]);
  }

  write(name: string | Buffer, content: string | Buffer, mode?: number): void {
    const path = this.path(name);
    mkdirSync(parent(path), { recursive: true });
    writeFileSync(path, content);
    if (mode !== undefined) chmodSync(path, mode);
  }

  link(name: string, target: string): void {
    mkdirSync(parent(this.path(name)), { recursive: true });
    symlinkSync(target, this.path(name));
  }

  read(name: string | Buffer): string {
    return readFileSync(this.path(name), "latin1");
  }

  /** The contents of these files; undefined for one that does not exist. */
  contents(...names: string[]): (string | undefined)[] {
    return names.map((name) => (this.has(name) ? this.read(name) : undefined));
  }

  has(name: string | Buffer): boolean {
    return lstatSync(this.path(name), { throwIfNoEntry: false }) !== undefined;
  }

  isFolder(name: string): boolean {
    return lstatSync(this.path(name), { throwIfNoEntry: false })?.isDirectory() ?? false;
  }

  remove(name: string | Buffer): void {
    rmSync(this.path(name), { recursive: true });
  }

  seen(): CheckoutView {
    const options = { env: this.env, maxBuffer: 1 << 28 };
    const args = ["-c", inspectScript, this.root];
    const { status, stdout, stderr } = spawnSync("python3", args, options);
    if (status !== 0) throw new Error(stderr.toString());
    return parseView(stdout.toString());
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function parent(path: Buffer): Buffer {
  return path.subarray(0, path.lastIndexOf(0x2f));
}
