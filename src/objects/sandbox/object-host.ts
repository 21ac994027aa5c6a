/**
 * Owns the Durable Object as the place a sandbox lives in.
 */
import type { Host, SqlValue } from "./host.ts";

const letters = "abcdefghijklmnopqrstuvwxyz0123456789";
/** The largest multiple of 36 in a byte: bytes above it would favour the first letters. */
const fairMax = 252;

export function objectHost(state: DurableObjectState, openContainer: Host["openContainer"]): Host {
  const { storage } = state;
  return {
    sql: <Row extends Record<string, SqlValue>>(query: string, ...bindings: SqlValue[]) =>
      storage.sql.exec<Row>(query, ...bindings).toArray(),
    setAlarm(at) {
      // It finishes at once in this storage and is part of the commit.
      void storage.setAlarm(at);
    },
    durable: () => storage.sync(),
    background: (work) => state.waitUntil(work),
    wipe: () => storage.deleteAll(),
    clock: () => Date.now(),
    timer(ms, ring) {
      const timer = setTimeout(ring, ms);
      return () => clearTimeout(timer);
    },
    draw,
    openContainer,
    log: (line) => console.log(JSON.stringify({ at: new Date().toISOString(), ...line })),
  };
}

function draw(length: number): string {
  let name = "";
  while (name.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length + 8))) {
      if (byte < fairMax && name.length < length) name += letters.charAt(byte % letters.length);
    }
  }
  return name;
}
