/** Implements the host of an object with a Durable Object. */

import type { Sleep } from "./beat.ts";
import type { ObjectHost, SqlValue } from "./host.ts";
import { ObjectClock } from "./object-clock.ts";
import { messageOf } from "./result.ts";
import { Timers } from "./timers.ts";

const letters = "abcdefghijklmnopqrstuvwxyz0123456789";
/** The largest multiple of 36 in a byte. Bytes above it are skipped, because they would favour the first letters. */
const unbiasedMax = 252;
/** The platform rings an alarm that was set before a step of the clock too late; a beat rings it after this. */
const overdueMs = 1_000;

type HostOptions = {
  /** Where the wall clock may step: measures time without it. */
  sleep: Sleep | undefined;
  /** Does what the alarm does. */
  ring: () => Promise<void>;
};

export type DurableHost = ObjectHost & {
  startClockAt(newestStored: number): void;
  isClockAhead(): boolean;
  /** Call when the platform rings the alarm. */
  alarmRang(): void;
};

export function durableHost(state: DurableObjectState, { sleep, ring }: HostOptions): DurableHost {
  const { storage } = state;
  // Not `performance.now()`: in workerd it is the wall clock, too.
  const clock = new ObjectClock(() => Date.now());
  let alarmDueAt: number | undefined;
  const log = (line: Record<string, string | number | undefined>) =>
    console.log(JSON.stringify({ at: new Date().toISOString(), ...line }));
  const ringIfOverdue = () => {
    if (alarmDueAt === undefined || clock.now() < alarmDueAt + overdueMs) return;
    alarmDueAt = undefined;
    const ringing = ring().catch((error: unknown) =>
      log({ failed: "alarm", message: messageOf(error) }),
    );
    state.waitUntil(ringing);
  };
  const timers = new Timers({
    startBeat:
      sleep === undefined
        ? undefined
        : (ms, onBeat) => {
            const end = clock.measure(ms);
            const passed = (isOver: boolean) => {
              end(isOver);
              onBeat(isOver);
              ringIfOverdue();
            };
            void sleep(ms).then(
              () => passed(true),
              () => passed(false),
            );
          },
  });
  return {
    sql: <Row extends Record<string, SqlValue>>(query: string, ...bindings: SqlValue[]) =>
      storage.sql.exec<Row>(query, ...bindings).toArray(),
    transaction: <T>(work: () => T) => storage.transactionSync(work),
    setAlarm(dueAt) {
      // With SQLite storage this takes effect at once and is part of the commit, so nothing has to wait for it.
      alarmDueAt = dueAt;
      void storage.setAlarm(clock.toWall(dueAt));
    },
    alarmRang() {
      alarmDueAt = undefined;
    },
    startClockAt: (newestStored) => clock.startAt(newestStored),
    isClockAhead: () => clock.isAhead(),
    flush: () => storage.sync(),
    waitUntil: (work) => state.waitUntil(work),
    deleteAll: () => storage.deleteAll(),
    clock: () => clock.now(),
    setTimer: (ms, callback) => timers.set(ms, callback),
    randomId,
    log,
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
