/**
 * Owns `npm start`: the order in which one machine's Berth comes up, and that all of it ends together.
 * Does not own any of the steps.
 */
import { createHash } from "node:crypto";
import { relative } from "node:path";
import { requireFreeAddress } from "./address.js";
import { build } from "./build.js";
import { openDataFolder, secretsOf } from "./data-folder.js";
import { requireDescriptors } from "./descriptors.js";
import { Engine } from "./engine.js";
import { install } from "./install.js";
import { help, parseOptions } from "./options.js";
import { endLeftovers, noteProcesses } from "./process-record.js";
import { isProgram, run, say } from "./say.js";
import { Workerd } from "./workerd.js";

const parentLookMs = 500;

async function start() {
  const options = parseOptions(process.argv.slice(2), process.env);
  if (options.help) {
    process.stdout.write(help);
    return 0;
  }
  const sandboxesMax = requireDescriptors(process.env.BERTH_ENGINE_CONTAINERS_MAX);
  const lock = openDataFolder(options.data);
  await endLeftovers(options.data);
  await requireFreeAddress(options.host, options.port);
  await install();
  await build();
  const asked = askedToEnd();
  const code = await serve({ ...options, sandboxesMax }, asked);
  lock.release();
  return code;
}

/**
 * @param {import("./options.js").Options & { sandboxesMax: number }} options
 * @param {Promise<"asked">} asked
 * @returns {Promise<number>}
 */
async function serve(options, asked) {
  const { data, sandboxesMax } = options;
  const { key, secret, firstRun } = secretsOf(data);
  const engine = new Engine(data, sandboxesMax);
  /** @type {Workerd | undefined} */
  let workerd;
  const note = () =>
    noteProcesses(data, [
      { name: "the engine", pid: engine.child?.pid ?? -1 },
      { name: "workerd", pid: workerd?.child.pid ?? -1 },
    ]);
  try {
    const up = async () => {
      await engine.start();
      note();
      workerd = await Workerd.start(options, {
        BERTH_API_KEYS: apiKeys(key),
        BERTH_SECRET: secret,
        BERTH_ENGINE_URL: engine.url,
        BERTH_ENGINE_SECRET: engine.secret,
      });
      note();
      await workerd.answers();
      return workerd;
    };
    const serving = await Promise.race([up(), asked]);
    if (serving === "asked") return 0;
    process.stdout.write(`ready on ${serving.url}\n`);
    if (firstRun) say(`try it:\n${firstCommand(serving.url, data)}`);
    return await Promise.race([
      asked.then(() => 0),
      serving.child.ended.then(({ code, signal }) => {
        say(`workerd ended (${signal ?? code}); see ${serving.child.log.path}`);
        return 1;
      }),
      engine.keep(note).then(() => {
        say(`the engine keeps ending; see ${engine.child?.log.path}`);
        return 1;
      }),
    ]);
  } finally {
    // First who calls, then who is called.
    await workerd?.end();
    await engine.end();
    note();
  }
}

/** @returns {Promise<"asked">} */
function askedToEnd() {
  return new Promise((resolve) => {
    // npm passes on what the terminal has sent already: once is enough, and the end has its own limits.
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
      process.on(signal, () => resolve("asked"));
    // npm that is killed, or loses its terminal, passes nothing on: then we have another parent.
    const parent = process.ppid;
    const look = () => process.ppid !== parent && resolve("asked");
    if (process.env.npm_lifecycle_event) setInterval(look, parentLookMs).unref();
  });
}

/** @param {string} key */
function apiKeys(key) {
  const local = `local:${createHash("sha256").update(key).digest("hex")}`;
  const more = process.env.BERTH_API_KEYS;
  return more ? `${local},${more}` : local;
}

/**
 * @param {string} url
 * @param {string} data
 */
function firstCommand(url, data) {
  const path = relative(process.cwd(), data);
  const key = `${path.startsWith("..") ? data : path}/key`;
  const head = `-sS -H "Authorization: Bearer $(cat ${quoted(key)})" -H 'Content-Type: application/json'`;
  const create = `curl ${head} ${url}/v1/sandboxes -d '{"waitMs":20000}'`;
  const id = `$(${create} | sed -n 's/.*"id":"\\([a-z0-9]*\\)".*/\\1/p')`;
  return `curl ${head} "${url}/v1/sandboxes/${id}/exec" -d '{"command":"echo hello from $(hostname)"}'`;
}

/** @param {string} path  for a place inside double quotes and a $( ) */
function quoted(path) {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

process.stdout.on("error", () => {
  // Who reads us has gone; the server has not.
});
if (isProgram(import.meta.url)) {
  await run(start);
  process.exit();
}
