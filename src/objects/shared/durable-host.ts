/** Implements the host of an object with a Durable Object. */
import type { ObjectHost, SqlValue } from "./host.ts";
import { Timers } from "./timers.ts";

const letters = "abcdefghijklmnopqrstuvwxyz0123456789";
/** The largest multiple of 36 in a byte. Bytes above it are skipped, because they would favour the first letters. */
const unbiasedMax = 252;

export function durableHost(state: DurableObjectState): ObjectHost {
  const { storage } = state;
  const timers = new Timers();
  return {
    sql: <Row extends Record<string, SqlValue>>(query: string, ...bindings: SqlValue[]) =>
      storage.sql.exec<Row>(query, ...bindings).toArray(),
    transaction: <T>(work: () => T) => storage.transactionSync(work),
    setAlarm(dueAt) {
      // With SQLite storage this takes effect at once and is part of the commit, so nothing has to wait for it.
      void storage.setAlarm(dueAt);
    },
    flush: () => storage.sync(),
    waitUntil: (work) => state.waitUntil(work),
    deleteAll: () => storage.deleteAll(),
    clock: () => Date.now(),
    setTimer: (ms, callback) => timers.set(ms, callback),
    randomId,
    log: (line) => console.log(JSON.stringify({ at: new Date().toISOString(), ...line })),
  };
}

function randomId(length: number): string {
  let id = "";
  while (id.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length + 8))) {
      if (byte < unbiasedMax && id.length < length) id += letters.charAt(byte % letters.length);
    }
  }
  return id;
}
