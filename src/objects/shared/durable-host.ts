/**
 * Owns the Durable Object as the place an object's library lives in.
 */
import type { Place, SqlValue } from "./host.ts";
import { Timers } from "./timers.ts";

const letters = "abcdefghijklmnopqrstuvwxyz0123456789";
/** The largest multiple of 36 in a byte: bytes above it would favour the first letters. */
const fairMax = 252;

export function objectPlace(state: DurableObjectState): Place {
  const { storage } = state;
  const timers = new Timers();
  return {
    sql: <Row extends Record<string, SqlValue>>(query: string, ...bindings: SqlValue[]) =>
      storage.sql.exec<Row>(query, ...bindings).toArray(),
    together: (work) => storage.transactionSync(work),
    setAlarm(at) {
      // It finishes at once in this storage and is part of the commit.
      void storage.setAlarm(at);
    },
    durable: () => storage.sync(),
    background: (work) => state.waitUntil(work),
    wipe: () => storage.deleteAll(),
    clock: () => Date.now(),
    timer: (ms, ring) => timers.wait(ms, ring),
    draw,
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
