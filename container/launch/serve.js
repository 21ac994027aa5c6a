/**
 * Runs one server: the engine and the Worker, which start and end together. See workerd.js and wrangler-dev.js for
 * the two ways to serve the Worker.
 */
import { createHash } from "node:crypto";
import { Engine } from "./engine.js";
import { writeProcessRecord } from "./process-record.js";
import { printStatus } from "./program.js";

const parentPollMs = 500;

/**
 * @typedef {object} WorkerProcess
 * @property {string} url
 * @property {import("./child.js").Child} child
 * @property {() => Promise<void>} waitUntilReady
 * @property {() => Promise<void>} end
 */

/**
 * @param {object} server
 * @param {string} server.data
 * @param {number} server.sandboxesMax
 * @param {string} server.key
 * @param {string} server.secret
 * @param {(bindings: Record<string, string>) => Promise<WorkerProcess>} server.startWorker
 * @param {(url: string) => void} server.ready
 * @returns {Promise<number>}
 */
export async function serve({ data, sandboxesMax, key, secret, startWorker, ready }) {
  const endRequested = waitForEndRequest();
  const engine = new Engine(data, sandboxesMax);
  /** @type {WorkerProcess | undefined} */
  let worker;
  const recordProcesses = () =>
    writeProcessRecord(data, [
      { name: "the engine", pid: engine.child?.pid ?? -1 },
      { name: worker?.child.name ?? "", pid: worker?.child.pid ?? -1 },
    ]);
  try {
    const start = async () => {
      await engine.start();
      recordProcesses();
      worker = await startWorker({
        BERTH_API_KEYS: apiKeys(key),
        BERTH_SECRET: secret,
        BERTH_ORIGINS: process.env.BERTH_ORIGINS ?? "",
        BERTH_SIZES: process.env.BERTH_SIZES ?? "",
        BERTH_ENGINE_URL: engine.url,
        BERTH_ENGINE_SECRET: engine.secret,
      });
      recordProcesses();
      await worker.waitUntilReady();
      return worker;
    };
    const serving = await Promise.race([start(), endRequested]);
    if (serving === "requested") return 0;
    ready(serving.url);
    const { child } = serving;
    const why = await Promise.race([
      endRequested,
      child.ended.then(
        ({ code, signal }) => `${child.name} ended (${signal ?? code}). See ${child.log.path}.`,
      ),
      engine
        .restartUntilGivenUp(recordProcesses)
        .then(() => `The engine keeps ending. See ${engine.child?.log.path}.`),
    ]);
    if (why === "requested") return 0;
    // Only an unexpected end is reported.
    printStatus(why);
    return 1;
  } finally {
    // The caller ends before its callee.
    await worker?.end();
    await engine.end();
    recordProcesses();
  }
}

/** @param {string} key */
function apiKeys(key) {
  const local = `local:${createHash("sha256").update(key).digest("hex")}`;
  const more = process.env.BERTH_API_KEYS;
  return more ? `${local},${more}` : local;
}

/**
 * Resolves on a signal, or when the npm that started this process is gone.
 * @returns {Promise<"requested">}
 */
function waitForEndRequest() {
  return new Promise((resolve) => {
    // npm repeats the signals of the terminal: the handlers stay, and only the first signal counts.
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
      process.on(signal, () => resolve("requested"));
    // An npm that is killed, or loses its terminal, forwards no signal: then this process gets another parent.
    const parent = process.ppid;
    const checkParent = () => process.ppid !== parent && resolve("requested");
    if (process.env.npm_lifecycle_event) setInterval(checkParent, parentPollMs).unref();
  });
}
