/** Pairs of a checkout and its sandbox, for tests of syncs. */
import { afterAll, expect } from "vitest";
import { type PullResult, pull, type Synced, syncUp } from "../../../../src/cli/sync/sync.ts";
import { connect, type Sandbox as SandboxHandle } from "../../../../src/client/index.ts";
import { useSharedServer } from "../../shared-server.ts";
import { Checkout } from "./checkout.ts";
import { type CheckoutView, inspectScript, parseView } from "./checkout-view.ts";

/** Makes pairs on the shared server, which is cleaned up after the last test of the file. */
export async function useSyncPairs() {
  const server = await useSharedServer();
  afterAll(() => server[Symbol.asyncDispose]());
  const berth = connect(server);
  const pairOf = async (checkout: Checkout): Promise<SyncPair> => {
    const { id } = await berth.create({ waitMs: 20_000 });
    return new SyncPair(checkout, berth.sandbox(id));
  };
  /** A pair of a checkout with one commit. */
  const begun = (files?: Record<string, string>) => pairOf(Checkout.begun(files));
  return { pairOf, begun };
}

export class SyncPair implements AsyncDisposable {
  readonly checkout: Checkout;
  readonly sandbox: SandboxHandle;

  constructor(checkout: Checkout, sandbox: SandboxHandle) {
    this.checkout = checkout;
    this.sandbox = sandbox;
  }

  async sync(folder = this.checkout.root, sandbox = this.sandbox): Promise<Synced> {
    return await withHome(this.checkout, () => syncUp(sandbox, folder));
  }

  async pull(synced: Synced, folder = this.checkout.root): Promise<PullResult> {
    return await withHome(this.checkout, () => pull(this.sandbox, folder, synced.baseline));
  }

  /** Runs a command in the sandbox, which must succeed; returns its output. */
  async there(command: string): Promise<string> {
    const done = await this.sandbox.exec({ command, cwd: "/workspace" });
    if (done.exitCode !== 0) throw new Error(`${command}: ${done.stderr}`);
    return done.stdout;
  }

  async seen(): Promise<CheckoutView> {
    const argv = ["python3", "-c", inspectScript, "/workspace"];
    const done = await this.sandbox.exec({ argv, maxOutputBytes: 16 * 1024 * 1024 });
    if (done.exitCode !== 0) throw new Error(done.stderr);
    return parseView(done.stdout);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sandbox.delete({ force: true });
    this.checkout[Symbol.dispose]();
  }
}

/** Syncs, and compares both sides. */
export async function expectSynced(pair: SyncPair): Promise<number> {
  const here = pair.checkout.seen();
  const { sentBytes } = await pair.sync();
  expect(await pair.seen()).toEqual(here);
  return sentBytes;
}

/** Runs with the owner's home, where git finds the owner's settings. */
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
