/**
 * Counts what the platform bills, inside workerd: requests and alarms of objects, rows read and written, and the time
 * during which an object may not hibernate. It wraps the real objects and changes nothing else. See server.ts for the
 * server around it.
 */

/**
 * @typedef {{ requests: number, alarms: number, rowsRead: number, rowsWritten: number, awakeMs: number, lines: number }} Counts
 * @typedef {{ toArray(): unknown[], rowsRead: number, rowsWritten: number }} Cursor
 * @typedef {{ exec(query: string, ...bindings: unknown[]): Cursor, databaseSize: number }} Sql
 * @typedef {{ sql: Sql, setAlarm(at: number): Promise<void> }} Storage
 * @typedef {{ storage: Storage, waitUntil(work: Promise<unknown>): void }} State
 * @typedef {{ fetch(request: Request, ...rest: unknown[]): Promise<Response> }} Worker
 */

/** By kind of object; one process runs all objects and the Worker. @type {Record<string, Counts>} */
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
  storage.setAlarm = (index) => {
    // Billed as a row.
    countsOf(kind).rowsWritten += 1;
    return setAlarm(index);
  };
}

/** Sums the time during which an object has running work; overlapping work counts once. */
class Awake {
  #running = 0;
  #since = 0;
  /** @param {string} kind */
  constructor(kind) {
    this.kind = kind;
  }
  /** @param {unknown} work */
  async during(work) {
    if (this.#running++ === 0) this.#since = performance.now();
    try {
      await work;
    } catch {
      // The caller handles the failure.
    }
    if (--this.#running === 0) countsOf(this.kind).awakeMs += performance.now() - this.#since;
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
        const result = original.apply(this, args);
        void times.get(this)?.during(result);
        return result;
      },
    });
  }
  return Counted;
}

/** Serves the counts at `/counted`; `?reset` starts them again. @param {Worker} worker @returns {Worker} */
export function countedWorker(worker) {
  const log = console.log.bind(console);
  console.log = (...args) => {
    countsOf("log").lines += 1;
    log(...args);
  };
  return {
    async fetch(request, ...rest) {
      const url = new URL(request.url);
      if (url.pathname !== "/counted") {
        countsOf("worker").requests += 1;
        return worker.fetch(request, ...rest);
      }
      const counted = Response.json({ kinds, databaseBytes });
      if (url.searchParams.has("reset")) kinds = {};
      return counted;
    },
  };
}
