/**
 * Owns the life of one server: the engine, a front that serves the Worker, and that all of it ends together.
 * Does not own which front (workerd.js, wrangler-dev.js), nor what must hold before (prepare.js).
 */
import { createHash } from "node:crypto";
import { askedToEnd } from "./asked-to-end.js";
import { Engine } from "./engine.js";
import { noteProcesses } from "./process-record.js";
import { say } from "./say.js";

/**
 * @typedef {object} Front
 * @property {string} url
 * @property {import("./child.js").Child} child
 * @property {() => Promise<void>} answers  resolves when the Worker does
 * @property {() => Promise<void>} end
 */

/**
 * @param {object} server
 * @param {string} server.data
 * @param {number} server.sandboxesMax
 * @param {string} server.key
 * @param {string} server.secret
 * @param {(bindings: Record<string, string>) => Promise<Front>} server.startFront
 * @param {(url: string) => void} server.ready
 * @returns {Promise<number>}
 */
export async function serve({ data, sandboxesMax, key, secret, startFront, ready }) {
  const asked = askedToEnd();
  const engine = new Engine(data, sandboxesMax);
  /** @type {Front | undefined} */
  let front;
  const note = () =>
    noteProcesses(data, [
      { name: "the engine", pid: engine.child?.pid ?? -1 },
      { name: front?.child.name ?? "", pid: front?.child.pid ?? -1 },
    ]);
  try {
    const up = async () => {
      await engine.start();
      note();
      front = await startFront({
        BERTH_API_KEYS: apiKeys(key),
        BERTH_SECRET: secret,
        BERTH_ORIGINS: process.env.BERTH_ORIGINS ?? "",
        BERTH_SIZES: process.env.BERTH_SIZES ?? "",
        BERTH_ENGINE_URL: engine.url,
        BERTH_ENGINE_SECRET: engine.secret,
      });
      note();
      await front.answers();
      return front;
    };
    const serving = await Promise.race([up(), asked]);
    if (serving === "asked") return 0;
    ready(serving.url);
    const { child } = serving;
    const why = await Promise.race([
      asked,
      child.ended.then(
        ({ code, signal }) => `${child.name} ended (${signal ?? code}); see ${child.log.path}`,
      ),
      engine.keep(note).then(() => `the engine keeps ending; see ${engine.child?.log.path}`),
    ]);
    if (why === "asked") return 0;
    // What ends because it was asked to is no news.
    say(why);
    return 1;
  } finally {
    // First who calls, then who is called.
    await front?.end();
    await engine.end();
    note();
  }
}

/** @param {string} key */
function apiKeys(key) {
  const local = `local:${createHash("sha256").update(key).digest("hex")}`;
  const more = process.env.BERTH_API_KEYS;
  return more ? `${local},${more}` : local;
}
