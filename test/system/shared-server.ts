/**
 * Lends a test file the server of its worker, with a tenant of its own.
 * For tests that neither kill, restart nor reconfigure a server, nor count all that it holds; see server.ts for those.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, inject } from "vitest";
import { until } from "../until.ts";
import { RunningServer } from "./server.ts";
import type { LentServer } from "./server-pool.ts";

const pageSize = 1000;

export class SharedServer extends RunningServer implements AsyncDisposable {
  readonly tenant: string;

  constructor(lent: LentServer) {
    super(lent);
    this.tenant = lent.tenant;
  }

  /** Destroys what the tenant has, and waits until no container of it runs. */
  async [Symbol.asyncDispose](): Promise<void> {
    const ids = await this.#sandboxes();
    const { body } = await this.call("GET", "/v1/plans");
    for (const { name } of body.plans as { name: string }[]) {
      await this.call("DELETE", `/v1/plans/${name}?sandboxes=destroy&force=true`);
    }
    await Promise.all(ids.map((id) => this.call("DELETE", `/v1/sandboxes/${id}?force=true`)));
    await until(`containers of ${this.tenant} have ended`, () => {
      const folder = join(this.data, "engine", "live");
      if (!existsSync(folder)) return true;
      const running = new Set(readdirSync(folder));
      return ids.every((id) => !running.has(id));
    });
  }

  async #sandboxes(): Promise<string[]> {
    const { body } = await this.call("GET", `/v1/sandboxes?limit=${pageSize}`);
    return (body.sandboxes as { id: string }[]).map(({ id }) => id);
  }
}

/** For all tests of a file: call it where the file begins. */
export async function sharedServerOfFile(): Promise<SharedServer> {
  const server = await useSharedServer();
  afterAll(() => server[Symbol.asyncDispose]());
  return server;
}

/** The caller disposes of it. */
export async function useSharedServer(): Promise<SharedServer> {
  const worker = process.env.VITEST_POOL_ID ?? "0";
  const response = await fetch(`${inject("serverPool")}/${worker}`);
  if (!response.ok) throw new Error(`the shared server does not start: ${await response.text()}`);
  return new SharedServer((await response.json()) as LentServer);
}
