/**
 * Runs one Berth per test worker for all files that share it, started for the first of them and ended with the run.
 * It belongs to vitest's own process, because a worker process ends with each file. See shared-server.ts for its caller.
 */
import { createHash, randomBytes } from "node:crypto";
import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestProject } from "vitest/node";
import { processesNaming } from "./processes.ts";
import { type Server, type ServerAddress, startServer } from "./server.ts";

/** Each file gets a tenant of its own; a server whose tenants are used up is replaced. */
const tenantsPerServer = 100;

/** Another origin than the server's own, for tests of browsers and CORS. */
export const allowedOrigin = "https://app.test";

export type LentServer = ServerAddress & { tenant: string };

type PooledServer = { server: Server; isRunning: boolean; unusedKeys: Map<string, string> };

declare module "vitest" {
  export interface ProvidedContext {
    serverPool: string;
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const pool = new ServerPool();
  project.provide("serverPool", await pool.listen());
  return () => pool.close();
}

class ServerPool {
  readonly #current = new Map<string, Promise<PooledServer>>();
  readonly #servers: Promise<PooledServer>[] = [];
  readonly #http: HttpServer;

  constructor() {
    this.#http = createServer((request, response) => {
      const worker = request.url ?? "";
      this.#lend(worker).then(
        (lent) => response.end(JSON.stringify(lent)),
        (error) => response.writeHead(500).end(String(error)),
      );
    });
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#http.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
  }

  async #lend(worker: string): Promise<LentServer> {
    const current = await this.#current.get(worker)?.catch(() => undefined);
    if (current === undefined || !current.isRunning || current.unusedKeys.size === 0) {
      const starting = startPooled();
      this.#current.set(worker, starting);
      this.#servers.push(starting);
    }
    const { server, unusedKeys } = (await this.#current.get(worker)) as PooledServer;
    const [[tenant, key] = ["", ""]] = unusedKeys;
    unusedKeys.delete(tenant);
    return { url: server.url, data: server.data, pid: server.pid, tenant, key };
  }

  /** Ends every server. Fails where one has written a secret to its logs, or leaves a process. */
  async close(): Promise<void> {
    this.#http.close();
    this.#http.closeAllConnections();
    const ends = await Promise.allSettled(
      this.#servers.map(async (starting) => {
        const pooled = await starting.catch(() => undefined);
        if (pooled === undefined) return;
        await pooled.server[Symbol.asyncDispose]();
        const left = processesNaming(pooled.server.data).map(({ command }) => command);
        if (left.length > 0) throw new Error(`a shared server has left: ${left.join(", ")}`);
      }),
    );
    const failed = ends.filter((end) => end.status === "rejected");
    if (failed.length > 0) throw new AggregateError(failed.map(({ reason }) => reason));
  }
}

async function startPooled(): Promise<PooledServer> {
  const unusedKeys = new Map(
    Array.from({ length: tenantsPerServer }, (_, index) => [
      `file-${index}`,
      `berth_file_${index}_${randomBytes(16).toString("hex")}`,
    ]),
  );
  const digest = (key: string) => createHash("sha256").update(key).digest("hex");
  const keys = [...unusedKeys].map(([tenant, key]) => `${tenant}:${digest(key)}`);
  const server = await startServer({
    env: { BERTH_API_KEYS: keys.join(","), BERTH_ORIGINS: allowedOrigin },
  });
  const pooled = { server, isRunning: true, unusedKeys };
  server.launched.ended.then(() => {
    pooled.isRunning = false;
  });
  return pooled;
}
