/**
 * Runs the contract suite against a real Berth: its callers, its sockets, and what the machine shows of a sandbox.
 * Its clock, alarms and objects are out of reach.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { WebSocket } from "ws";
import { type ConnectedCalls, connectCalls } from "../../berth-calls.ts";
import type { Power, Socket, World } from "../../contract/sandbox-api.ts";
import { contractSizes } from "../../contract/sizes.ts";
import { treeOf } from "../processes.ts";
import type { Server } from "../server.ts";

export const otherKey = "berth_other_of_the_contract";

const sha256 = (key: string) => createHash("sha256").update(key).digest("hex");

/** With a second tenant, whose key is `otherKey`. */
export const contractOptions = {
  env: { BERTH_API_KEYS: `other:${sha256(otherKey)}`, BERTH_SIZES: contractSizes },
};

export function realWorld(server: () => Server): World {
  const berth = (bearer: () => string) => berthOf(server, bearer);
  const local = berth(() => server().key);
  const cannot = () => Promise.reject(new Error("that cannot be done to a real Berth"));
  return {
    can: new Set<Power>(["compare", "sockets"]),
    berth: local,
    other: berth(() => otherKey),
    async leaser(id) {
      const { token } = await local.sandbox(id).createToken({ rights: ["read", "lease"] });
      return berth(() => token).sandbox(id);
    },
    async inside(id) {
      const { events } = await local.sandbox(id).events({ limit: 1000 });
      const starts = events.filter(
        ({ event }) => event.type === "state" && event.state === "starting",
      );
      const agent = existsSync(join(server().data, "engine", "live", id))
        ? server().agentOf(id).pid
        : undefined;
      return {
        alive: agent !== undefined,
        ran: [],
        running: agent === undefined ? 0 : childrenOf(agent).length,
        starts: starts.map((start) => start.at),
        ...(agent === undefined ? { metadata: {}, copied: 0 } : copyIn(agent)),
      };
    },
    holdStarts: cannot,
    goOn: cannot,
    evict: cannot,
    clock: () => {
      throw new Error("the clock of a real Berth cannot be set");
    },
    fillEvents: cannot,
    ring: cannot,
    connect: (id, terminal, query, protocol) =>
      connect(server(), `/v1/sandboxes/${id}/terminals/${terminal}/connect?${query}`, protocol),
  };
}

/** Connects to a server that starts later. Nothing is retried, so that the test sees each response as it came. */
function berthOf(server: () => Server, key: () => string): ConnectedCalls {
  const url = "http://berth.test";
  return connectCalls({
    url,
    key,
    fetch: (to, init) => fetch(to.replace(url, server().url), init),
    retry: { retries: 0 },
  });
}

function childrenOf(pid: number): number[] {
  return treeOf(pid)
    .filter(({ parent }) => parent === pid)
    .map((seen) => seen.pid);
}

function copyIn(agent: number): { metadata: Record<string, string>; copied: number } {
  try {
    const text = readFileSync(`/proc/${agent}/root/run/berth/metadata.json`, "utf8");
    const { metadata, version } = JSON.parse(text);
    return { metadata, copied: version };
  } catch {
    // Before the first push, or the agent has just ended.
    return { metadata: {}, copied: 0 };
  }
}

async function connect({ url, key }: Server, path: string, protocol?: string): Promise<Socket> {
  const protocols = protocol === undefined ? [] : [protocol];
  const headers = { authorization: `Bearer ${key}` };
  const socket = new WebSocket(`${url.replace("http", "ws")}${path}`, protocols, { headers });
  const received: Socket["received"][number][] = [];
  let closed: number | undefined;
  socket.on("message", (data, isBinary) => {
    received.push(isBinary ? { bytes: String(data) } : { frame: String(data) });
  });
  socket.on("close", (code) => {
    closed = code;
  });
  await new Promise<void>((resolve, reject) => {
    socket.once("open", resolve);
    socket.on("error", reject);
    socket.once("unexpected-response", (_, { statusCode }) => {
      reject(new Error(`the socket was refused: ${statusCode}`));
      socket.terminate();
    });
  });
  return {
    received,
    get closed() {
      return closed;
    },
    send: (data) => socket.send(data),
    close: () => socket.close(),
  };
}
