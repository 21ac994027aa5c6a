/**
 * Owns the count of what the platform bills, inside workerd: requests and alarms of objects, rows read and written, the time
 * in which an object may not sleep. The objects are the real ones; nothing of them is changed but what is counted.
 * Does not own the server around it (server.ts), nor prices (prices.ts).
 */

/**
 * @typedef {{ requests: number, alarms: number, rowsRead: number, rowsWritten: number, awakeMs: number, lines: number }} Counts
 * @typedef {{ toArray(): unknown[], rowsRead: number, rowsWritten: number }} Cursor
 * @typedef {{ exec(query: string, ...bindings: unknown[]): Cursor, databaseSize: number }} Sql
 * @typedef {{ sql: Sql, setAlarm(at: number): Promise<void> }} Storage
 * @typedef {{ storage: Storage, waitUntil(work: Promise<unknown>): void }} State
 * @typedef {{ fetch(request: Request, ...rest: unknown[]): Promise<Response> }} Door
 */

/** By kind of object. One process holds them all, and the door. @type {Record<string, Counts>} */
let kinds = {};
/** @type {Record<string, number>} */
const databaseBytes = {};

/** @param {string} kind */
function countsOf(kind) {
  kinds[kind] ??= { requests: 0, alarms: 0, rowsRead: 0, rowsWritten: 0, awakeMs: 0, lines: 0 };
  return kinds[kind];
}

/** @param {string} kind @param {State} state */
function countStorage(kind, { storage }) {
  const { sql } = storage;
  const exec = sql.exec.bind(sql);
  sql.exec = (query, ...bindings) => {
    const cursor = exec(query, ...bindings);
    const toArray = cursor.toArray.bind(cursor);
    cursor.toArray = () => {
      const rows = toArray();
      countsOf(kind).rowsRead += cursor.rowsRead;
      countsOf(kind).rowsWritten += cursor.rowsWritten;
      databaseBytes[kind] = sql.databaseSize;
      return rows;
    };
    return cursor;
  };
  const setAlarm = storage.setAlarm.bind(storage);
  storage.setAlarm = (at) => {
    // Billed as a row.
    countsOf(kind).rowsWritten += 1;
    return setAlarm(at);
  };
}

/** The times in which something of one object is under way, each moment once. */
class Awake {
  #underWay = 0;
  #since = 0;
  /** @param {string} kind */
  constructor(kind) {
    this.kind = kind;
  }
  /** @param {unknown} work */
  async during(work) {
    if (this.#underWay++ === 0) this.#since = performance.now();
    try {
      await work;
    } catch {
      // Whoever asked is told.
    }
    if (--this.#underWay === 0) countsOf(this.kind).awakeMs += performance.now() - this.#since;
  }
}

/**
 * The same class, counted.
 * @template {new (state: State, env: unknown) => object} Class
 * @param {string} kind
 * @param {Class} Original
 * @returns {Class}
 */
export function counted(kind, Original) {
  /** @type {WeakMap<object, Awake>} */
  const times = new WeakMap();
  // @ts-expect-error: a mixin takes any arguments; the platform gives these two
  class Counted extends Original {
    /** @param {State} state @param {unknown} env */
    constructor(state, env) {
      const awake = new Awake(kind);
      countStorage(kind, state);
      const waitUntil = state.waitUntil.bind(state);
      state.waitUntil = (work) => {
        void awake.during(work);
        waitUntil(work);
      };
      super(state, env);
      times.set(this, awake);
    }
  }
  for (const name of Object.getOwnPropertyNames(Original.prototype)) {
    const original = Original.prototype[name];
    if (name === "constructor" || typeof original !== "function") continue;
    Object.defineProperty(Counted.prototype, name, {
      /** @this {object} @param {unknown[]} args */
      value(...args) {
        const counts = countsOf(kind);
        if (name === "alarm") counts.alarms += 1;
        else counts.requests += 1;
        const answer = original.apply(this, args);
        void times.get(this)?.during(answer);
        return answer;
      },
    });
  }
  return Counted;
}

/** Tells what was counted, and begins anew with `?reset`. @param {Door} door @returns {Door} */
export function countedDoor(door) {
  const log = console.log.bind(console);
  console.log = (...args) => {
    countsOf("log").lines += 1;
    log(...args);
  };
  return {
    async fetch(request, ...rest) {
      const url = new URL(request.url);
      if (url.pathname !== "/counted") {
        countsOf("door").requests += 1;
        return door.fetch(request, ...rest);
      }
      const told = Response.json({ kinds, databaseBytes });
      if (url.searchParams.has("reset")) kinds = {};
      return told;
    },
  };
}
