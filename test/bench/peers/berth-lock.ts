/**
 * Berth's lease as a lock to compare, over HTTP as any client uses it.
 */
import type { LeaseGranted, LeaseView } from "../../../src/protocol/lease.ts";
import type { Berth } from "../berth.ts";
import type { Lock } from "./lock.ts";

export function berthLock(berth: Berth, id: string): Lock {
  const path = `/v1/sandboxes/${id}/lease`;
  return {
    name: "Berth",
    async acquire(client) {
      const body = JSON.stringify({ holder: `client ${client}`, waitMs: 25_000 });
      const { status, text } = await berth.http.call("POST", path, body);
      if (status !== 201) throw new Error(`acquire returned ${status}: ${text}`);
      return (JSON.parse(text) as LeaseGranted).token;
    },
    async release(_client, token) {
      const more = { "berth-lease": token };
      const { status, text } = await berth.http.call("DELETE", path, undefined, more);
      if (status !== 200) throw new Error(`release returned ${status}: ${text}`);
    },
    async waiting() {
      const { text } = await berth.http.call("GET", path);
      return (JSON.parse(text) as LeaseView).waiterCount;
    },
  };
}
