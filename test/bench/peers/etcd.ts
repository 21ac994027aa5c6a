/**
 * The lock service of an etcd on this machine, over its JSON gateway. It is fair, each client has its own lease, and
 * each change is on disk before it is acknowledged.
 */
import type { Bench } from "../figure.ts";
import { Http } from "../http.ts";
import { type Lock, lockWaiters } from "../lock.ts";
import { freePort, startProgram } from "./program.ts";

const name = Buffer.from("berth-bench").toString("base64");
/** The range of all keys that begin with the name and a slash. */
const [from, to] = ["berth-bench/", "berth-bench0"].map((key) =>
  Buffer.from(key).toString("base64"),
);
const ttlSeconds = 300;

export async function etcdLock(bench: Bench, program: string): Promise<Lock> {
  const [clientPort, peerPort] = [await freePort(), await freePort()];
  const [client, peer] = [clientPort, peerPort].map((port) => `http://127.0.0.1:${port}`);
  if (client === undefined || peer === undefined) throw new Error("no address");
  const http = new Http(client, {}, lockWaiters + 8);
  bench.closes(() => http.close());
  const call = <Result>(path: string, body: object) => http.json<Result>("POST", path, body);
  const args = [
    ...["--data-dir", bench.folder(), "--logger", "zap", "--log-level", "error"],
    ...["--listen-client-urls", client, "--advertise-client-urls", client],
    ...["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer],
    ...["--initial-cluster", `default=${peer}`],
  ];
  const grant = async () => (await call<{ ID: string }>("/v3/lease/grant", { TTL: ttlSeconds })).ID;
  const leases: string[] = [];
  await startProgram(bench, program, args, async () => {
    leases.push(await grant());
  });
  while (leases.length <= lockWaiters) leases.push(await grant());
  return {
    name: "etcd",
    acquire: async (client) =>
      (await call<{ key: string }>("/v3/lock/lock", { name, lease: leases[client] })).key,
    release: async (_client, key) => {
      await call("/v3/lock/unlock", { key });
    },
    async waiting() {
      const range = { key: from, range_end: to, count_only: true };
      const { count } = await call<{ count?: string }>("/v3/kv/range", range);
      return Number(count ?? 0) - 1;
    },
  };
}
