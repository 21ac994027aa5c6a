/**
 * Owns a real Berth for tests of syncs, and a checkout with its sandbox in it.
 * Does not own what is done with them.
 */

import { expect } from "vitest";
import { type PullResult, pull, type Synced, syncUp } from "../../../../src/cli/sync/sync.ts";
import { connect, type SandboxHandle } from "../../../../src/client/index.ts";
import { type SharedServer, useSharedServer } from "../../shared-server.ts";
import type { Checkout } from "./checkout.ts";
import { looking, type Seen, seenOf } from "./seen.ts";

export class World implements AsyncDisposable {
  readonly server: SharedServer;

  constructor(server: SharedServer) {
    this.server = server;
  }

  static async start(): Promise<World> {
    return new World(await useSharedServer());
  }

  async pair(checkout: Checkout): Promise<Pair> {
    const berth = connect({ url: this.server.url, key: this.server.key });
    const { id } = await berth.create({ waitMs: 20_000 });
    return new Pair(checkout, berth.sandbox(id));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
  }
}

export class Pair implements AsyncDisposable {
  readonly checkout: Checkout;
  readonly sandbox: SandboxHandle;

  constructor(checkout: Checkout, sandbox: SandboxHandle) {
    this.checkout = checkout;
    this.sandbox = sandbox;
  }

  async sync(folder = this.checkout.root): Promise<Synced> {
    return await withHome(this.checkout, () => syncUp(this.sandbox, folder));
  }

  async pull(synced: Synced, folder = this.checkout.root): Promise<PullResult> {
    return await withHome(this.checkout, () => pull(this.sandbox, folder, synced.baseline));
  }

  /** In the sandbox; what it wrote. It must go well. */
  async there(command: string): Promise<string> {
    const done = await this.sandbox.exec({ command, cwd: "/workspace" });
    if (done.exitCode !== 0) throw new Error(`${command}: ${done.stderr}`);
    return done.stdout;
  }

  async seen(): Promise<Seen> {
    const argv = ["python3", "-c", looking, "/workspace"];
    const done = await this.sandbox.exec({ argv, maxOutputBytes: 16 * 1024 * 1024 });
    if (done.exitCode !== 0) throw new Error(done.stderr);
    return seenOf(done.stdout);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sandbox.destroy({ force: true });
    this.checkout[Symbol.dispose]();
  }
}

/** Syncs, and looks on both sides. */
export async function same(pair: Pair): Promise<number> {
  const here = pair.checkout.seen();
  const { sentBytes } = await pair.sync();
  expect(await pair.seen()).toEqual(here);
  return sentBytes;
}

/** As the owner of the checkout runs it: git finds his settings at home. */
async function withHome<T>({ env }: Checkout, work: () => Promise<T>): Promise<T> {
  const { HOME, GIT_CONFIG_NOSYSTEM } = process.env;
  Object.assign(process.env, { HOME: env.HOME, GIT_CONFIG_NOSYSTEM: "1" });
  try {
    return await work();
  } finally {
    restore("HOME", HOME);
    restore("GIT_CONFIG_NOSYSTEM", GIT_CONFIG_NOSYSTEM);
  }
}

function restore(name: string, value: string | undefined): void {
  if (value === undefined) delete process.env[name];
  else process.env[name] = value;
}
