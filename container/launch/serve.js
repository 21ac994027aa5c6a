/** Runs a whole server from its options to its end: starts the engine and the Worker, restarts either, ends both. */
import { createHash } from "node:crypto";
import { join, relative } from "node:path";
import { requireFreeAddress } from "./address.js";
import { build } from "./build.js";
import { loadSecrets, openDataFolder } from "./data-folder.js";
import { ensureDescriptors } from "./descriptors.js";
import { Engine } from "./engine.js";
import { install } from "./install.js";
import { keepRunning } from "./keep-running.js";
import { followKeysFile } from "./keys-file.js";
import { help, parseOptions } from "./options.js";
import { endLeftoverProcesses, writeProcessRecord } from "./process-record.js";
import { printStatus, runProgram } from "./program.js";

const parentPollMs = 500;

/** @typedef {import("./worker-process.js").WorkerProcess} WorkerProcess */
/** @typedef {{ key: string, adminKey: string, secret: string }} Secrets */
/** @typedef {import("./worker-process.js").WorkerOptions} WorkerOptions */

/**
 * Serves until a signal or a fatal failure, then exits.
 * @param {string} command  for the help
 * @param {(options: WorkerOptions, bindings: Record<string, string>) => WorkerProcess} prepareWorker
 * @param {object} variant
 * @param {string} variant.dataFolder  of the objects and sandboxes, below the folder of the secrets
 * @param {(firstCommand: string, found: { firstRun: boolean }) => string | undefined} variant.hint
 */
export async function runServer(command, prepareWorker, { dataFolder, hint }) {
  // If the reader of stdout disconnects, the server continues.
  process.stdout.on("error", () => {});
  await runProgram(async () => {
    const options = parseOptions(process.argv.slice(2), process.env, command);
    if (options.help) {
      process.stdout.write(help(command));
      return 0;
    }
    // In the order in which a user should see the problems.
    const sandboxesMax = ensureDescriptors(process.env.BERTH_ENGINE_CONTAINERS_MAX);
    const { host, port } = options;
    const data = join(options.data, dataFolder);
    const lock = openDataFolder(data);
    await endLeftoverProcesses(data);
    await requireFreeAddress(host, port);
    await install();
    await build();
    const { firstRun, ...secrets } = loadSecrets(options.data);
    const code = await serve(
      { data, sandboxesMax, secrets, keysFolder: options.data },
      (bindings) => prepareWorker({ host, port, data }, bindings),
      (url) => {
        process.stdout.write(`ready on ${url}\n`);
        const text = hint(firstCommand(url, options.data), { firstRun });
        if (text !== undefined) printStatus(text);
      },
    );
    lock.release();
    return code;
  });
  process.exit();
}

/**
 * Resolves with the exit code.
 * @param {{ data: string, sandboxesMax: number, secrets: Secrets, keysFolder: string }} settings
 * @param {(bindings: Record<string, string>) => WorkerProcess} prepareWorker
 * @param {(url: string) => void} ready
 */
async function serve({ data, sandboxesMax, secrets, keysFolder }, prepareWorker, ready) {
  const endRequested = waitForEndRequest();
  const serverEnds = new AbortController();
  const engine = new Engine(data, sandboxesMax);
  /** @type {WorkerProcess | undefined} */
  let worker;
  const recordProcesses = () =>
    writeProcessRecord(data, [
      { name: "the engine", pid: engine.child?.pid ?? -1 },
      { name: worker?.title ?? "", pid: worker?.child?.pid ?? -1 },
    ]);
  try {
    const start = async () => {
      await engine.start();
      recordProcesses();
      worker = prepareWorker({
        BERTH_API_KEYS: listed(`local:${digestOf(secrets.key)}`, process.env.BERTH_API_KEYS),
        BERTH_ADMIN_KEYS: listed(digestOf(secrets.adminKey), process.env.BERTH_ADMIN_KEYS),
        BERTH_SECRET: secrets.secret,
        BERTH_ORIGINS: process.env.BERTH_ORIGINS ?? "",
        BERTH_SIZES: process.env.BERTH_SIZES ?? "",
        BERTH_QUOTAS: process.env.BERTH_QUOTAS ?? "",
        BERTH_ENGINE_URL: engine.url,
        BERTH_ENGINE_SECRET: engine.secret,
      });
      await worker.start();
      recordProcesses();
      await worker.waitUntilReady();
      return worker;
    };
    const serving = await Promise.race([start(), endRequested]);
    if (serving === "requested") return 0;
    ready(serving.url);
    void followKeysFile({
      data: keysFolder,
      url: serving.localUrl,
      adminKey: secrets.adminKey,
      serverEnds: serverEnds.signal,
    });
    const restart = { serverEnds: serverEnds.signal, onRestart: recordProcesses };
    // Objects, sandboxes and commands live on while either of the two is restarted.
    const why = await Promise.race([
      endRequested,
      keepRunning(serving, restart),
      keepRunning(engine, restart),
    ]);
    if (why === "requested") return 0;
    if (why !== undefined) printStatus(why);
    return 1;
  } finally {
    serverEnds.abort();
    // The caller ends before its callee.
    await worker?.end();
    await engine.end();
    recordProcesses();
  }
}

/** @param {string} key */
function digestOf(key) {
  return createHash("sha256").update(key).digest("hex");
}

/** @type {(first: string, more: string | undefined) => string} */
function listed(first, more) {
  return more ? `${first},${more}` : first;
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

/**
 * The command line that a new user pastes: it creates a sandbox and runs a command in it. The shell reads the key
 * from its file, so the line contains no secret.
 * @param {string} url
 * @param {string} data
 */
function firstCommand(url, data) {
  const path = relative(process.cwd(), data);
  const key = shellQuote(`${path.startsWith("..") ? data : path}/key`);
  return [
    `B=${url}/v1/sandboxes A="Authorization: Bearer $(cat ${key})" J='Content-Type: application/json';`,
    `curl -sS -H "$A" -H "$J" $B/$(curl -sS -H "$A" -H "$J" $B -d '{"waitMs":20000}'`,
    `| sed -n 's/.*"id":"\\([a-z0-9]*\\)".*/\\1/p')/exec -d '{"command":"echo hello from $(hostname)"}'`,
  ].join(" ");
}

/** @param {string} path  to be quoted inside double quotes and `$( )` */
function shellQuote(path) {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
