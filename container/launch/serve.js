/** Runs a whole server from its options to its end: starts the engine and the Worker, restarts either, ends both. */
import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { requireFreeAddress } from "./address.js";
import { loadSecrets, openDataFolder } from "./data-folder.js";
import { ensureDescriptors } from "./descriptors.js";
import { Engine } from "./engine.js";
import { keepRunning } from "./keep-running.js";
import { followKeysFile } from "./keys-file.js";
import { help, parseOptions } from "./options.js";
import { endLeftoverProcesses, writeProcessRecord } from "./process-record.js";
import { printStatus, runProgram } from "./program.js";
import { writeServerRecord } from "./server-record.js";
import { setVariables, unknownVariables } from "./variables.js";

const parentPollMs = 500;

/** @typedef {import("./worker-process.js").WorkerProcess} WorkerProcess */
/** @typedef {{ key: string, adminKey: string, metricsKey: string, secret: string }} Secrets */
/** @typedef {import("./worker-process.js").WorkerOptions} WorkerOptions */

/**
 * Serves until a signal or a fatal failure, then exits.
 * @param {string} command  for the help; flags follow it as they are
 * @param {(options: WorkerOptions, bindings: Record<string, string>) => WorkerProcess} prepareWorker
 * @param {object} variant
 * @param {string} variant.dataFolder  of the objects and sandboxes, below the folder of the secrets
 * @param {string} variant.data  the folder of the secrets, unless the user names one
 * @param {string} variant.berth  a shell command that runs `berth`
 * @param {(data: string) => Promise<void> | void} variant.prepare  makes what the server runs
 * @param {(firstCommands: string, found: { firstRun: boolean }) => string | undefined} variant.hint
 */
export async function runServer(
  command,
  prepareWorker,
  { dataFolder, data: defaultData, berth, prepare, hint },
) {
  // If the reader of stdout disconnects, the server continues.
  process.stdout.on("error", () => {});
  await runProgram(async () => {
    const options = parseOptions(process.argv.slice(2), process.env, command, defaultData);
    if (options.help) {
      process.stdout.write(help(command, defaultData));
      return 0;
    }
    for (const name of unknownVariables(process.env))
      printStatus(`The variable ${name} is unknown and has no effect.`);
    // In the order in which a user should see the problems.
    const sandboxesMax = ensureDescriptors(process.env.BERTH_ENGINE_CONTAINERS_MAX);
    const { host, port } = options;
    const data = join(options.data, dataFolder);
    const lock = openDataFolder(data);
    await endLeftoverProcesses(data);
    await requireFreeAddress(host, port);
    await prepare(options.data);
    const { firstRun, ...secrets } = loadSecrets(options.data);
    let removeRecord = () => {};
    const code = await serve(
      { data, sandboxesMax, secrets, keysFolder: options.data },
      (bindings) => prepareWorker({ host, port, data }, bindings),
      (url) => {
        const record = writeServerRecord({ url, data: options.data }, process.env);
        removeRecord = record.remove;
        process.stdout.write(`ready on ${url}\n`);
        const lines = firstCommands({ url, berth, data: options.data, isFound: record.isFound });
        const text = hint(lines, { firstRun: firstRun || process.stderr.isTTY === true });
        if (text !== undefined) printStatus(text);
        if (process.stderr.isTTY === true) void printDashboardLink(url, secrets.key);
      },
    ).finally(() => removeRecord());
    lock.release();
    return code;
  });
  process.exit();
}

/**
 * A person is at the terminal: the link works once, within a minute. Without it `berth dashboard` prints another.
 * @param {string} url
 * @param {string} key
 */
async function printDashboardLink(url, key) {
  try {
    const response = await fetch(`${url}/v1/sign-ins`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      signal: AbortSignal.timeout(10_000),
    });
    const { ticket } = /** @type {{ ticket?: string }} */ (await response.json());
    if (response.ok)
      printStatus(`Dashboard, for one sign-in within a minute: ${url}/#ticket=${ticket}`);
  } catch {
    // The server works without it.
  }
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
        BERTH_METRICS_KEYS: listed(digestOf(secrets.metricsKey), process.env.BERTH_METRICS_KEYS),
        BERTH_SECRET: secrets.secret,
        ...setVariables(process.env),
        BERTH_ENGINE_URL: engine.url,
        BERTH_ENGINE_SECRET: engine.secret,
        // The same after a restart of workerd, which the sandboxes survive.
        BERTH_SERVER_RUN: `${Date.now()}.${randomBytes(8).toString("hex")}`,
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
 * The two lines that a new user pastes in the folder of a repository. A key is read from its file, so they contain no
 * secret.
 * @param {{ url: string, berth: string, data: string, isFound: boolean }} server
 */
function firstCommands({ url, berth, data, isFound }) {
  const address = `export BERTH_URL=${url} BERTH_KEY="$(cat ${shellQuote(join(data, "key"))})"; `;
  return [
    `  ${isFound ? "" : address}alias berth=${JSON.stringify(berth)}`,
    "  berth exec -- sh -c 'echo hello from $(hostname)'",
  ].join("\n");
}

/** @param {string} path */
export function shellQuote(path) {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
