/**
 * Owns the lock of one etcd on this machine: its lock service, by the JSON door that it serves beside gRPC. Fair, with a
 * lease of its own for each client; each change is on disk before it is answered.
 */
import type { Bench } from "../figure.ts";
import { Http } from "../http.ts";
import { type Lock, lockWaiters } from "./lock.ts";
import { freePort, startProgram } from "./program.ts";

const name = Buffer.from("berth-bench").toString("base64");
/** The first key behind all that begin with the name and a slash. */
const [from, to] = ["berth-bench/", "berth-bench0"].map((key) =>
  Buffer.from(key).toString("base64"),
);
const ttlSeconds = 300;

export async function etcdLock(bench: Bench, program: string): Promise<Lock> {
  const [clients, peers] = [await freePort(), await freePort()];
  const [client, peer] = [clients, peers].map((port) => `http://127.0.0.1:${port}`);
  if (client === undefined || peer === undefined) throw new Error("no address");
  const http = new Http(client, {}, lockWaiters + 8);
  bench.ends(async () => {
    http.close();
    return [];
  });
  const call = async <Answer>(path: string, body: object): Promise<Answer> => {
    const { status, text } = await http.call("POST", path, JSON.stringify(body));
    if (status !== 200) throw new Error(`etcd: ${path} answered ${status}: ${text}`);
    return JSON.parse(text) as Answer;
  };
  const args = [
    ...["--data-dir", bench.folder(), "--logger", "zap", "--log-level", "error"],
    ...["--listen-client-urls", client, "--advertise-client-urls", client],
    ...["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer],
    ...["--initial-cluster", `default=${peer}`],
  ];
  const leases: string[] = [];
  await startProgram(bench, program, args, async () => {
    const { ID } = await call<{ ID: string }>("/v3/lease/grant", { TTL: ttlSeconds });
    leases[0] = ID;
  });
  while (leases.length <= lockWaiters) {
    const { ID } = await call<{ ID: string }>("/v3/lease/grant", { TTL: ttlSeconds });
    leases.push(ID);
  }
  return {
    name: "etcd",
    acquire: async (at) =>
      (await call<{ key: string }>("/v3/lock/lock", { name, lease: leases[at] })).key,
    release: async (_at, key) => {
      await call("/v3/lock/unlock", { key });
    },
    async waiting() {
      const range = { key: from, range_end: to, count_only: true };
      const { count } = await call<{ count?: string }>("/v3/kv/range", range);
      return Number(count ?? 0) - 1;
    },
  };
}
