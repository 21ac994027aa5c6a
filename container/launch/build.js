/**
 * Owns what is built from the sources: the agent's binary and the Worker's bundle, below dist/.
 * Does not own packages: install.js does. Builds only what changed, by a hash of what goes in.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { install } from "./install.js";
import { takeLock } from "./lock.js";
import { places, root, tools } from "./places.js";
import { isProgram, Refusal, run, say } from "./say.js";

const waitForOtherMs = 5 * 60_000;
const oneBuildMs = 3 * 60_000;

/**
 * @typedef {object} Part
 * @property {string} name
 * @property {string[]} sources  files and folders below the root
 * @property {string[]} outputs
 * @property {(folder: string) => void} make  writes files of the outputs' names into the folder
 */

/** @type {Part[]} */
const parts = [
  {
    name: "the agent",
    sources: ["container/agent", "container/engine", "src/protocol", "package-lock.json"],
    outputs: [places.agent],
    make: (folder) =>
      call(tools.bun, [
        // Split: each mode then keeps only its own part in memory, nearly 1 MB less an agent.
        ...["build", "--compile", "--minify", "--splitting"],
        // A user's bunfig.toml or .env in a working folder must not reach the agent.
        ...["--no-compile-autoload-bunfig", "--no-compile-autoload-dotenv"],
        ...["container/agent/main.ts", "--outfile", join(folder, basename(places.agent))],
      ]),
  },
  {
    name: "the Worker",
    sources: ["src", "wrangler.toml", "package-lock.json"],
    outputs: [`${places.worker}.map`, places.worker],
    make: (folder) =>
      call(tools.node, [
        ...[tools.wrangler, "deploy", "--dry-run"],
        // Without this wrangler wants Docker for the image.
        "--containers-rollout=none",
        ...["--outdir", folder],
      ]),
  },
];

/** Builds what changed. Safe when several do it at once: they take turns, and files appear whole. */
export async function build() {
  if (parts.every(isFresh)) return;
  mkdirSync(places.dist, { recursive: true });
  const lock = takeLock(places.checkoutLock, { waitMs: waitForOtherMs });
  if ("heldBy" in lock)
    throw new Refusal(`process ${lock.heldBy} is still installing or building here`);
  try {
    for (const part of parts) if (!isFresh(part)) make(part);
  } finally {
    lock.release();
  }
}

/** @param {Part} part */
function isFresh(part) {
  const stamp = stampOf(part);
  return (
    part.outputs.every((output) => existsSync(output)) &&
    existsSync(stamp) &&
    readFileSync(stamp, "utf8") === hashOf(part.sources)
  );
}

/** @param {Part} part */
function make(part) {
  const began = Date.now();
  // Before the build: a source that changes meanwhile makes the stamp wrong, and the next build right.
  const hash = hashOf(part.sources);
  const folder = mkdtempSync(join(places.dist, "making-"));
  try {
    part.make(folder);
    for (const output of part.outputs) {
      mkdirSync(dirname(output), { recursive: true });
      renameSync(join(folder, basename(output)), output);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  writeFileSync(stampOf(part), hash);
  say(`built ${part.name} in ${((Date.now() - began) / 1000).toFixed(1)} s`);
}

/** @param {Part} part */
function stampOf(part) {
  return join(places.dist, `${part.name.replace(/^the /, "").toLowerCase()}.stamp`);
}

/** @param {string[]} sources */
function hashOf(sources) {
  const hash = createHash("sha256").update(readFileSync(fileURLToPath(import.meta.url)));
  for (const source of sources) {
    for (const file of filesBelow(source))
      hash.update(`\0${file}\0`).update(readFileSync(join(root, file)));
  }
  return hash.digest("hex");
}

/**
 * @param {string} path  below the root
 * @returns {string[]}
 */
function filesBelow(path) {
  const found = statSync(join(root, path), { throwIfNoEntry: false });
  if (found === undefined || path === "container/engine/launch") return [];
  if (!found.isDirectory()) return [path];
  const names = readdirSync(join(root, path)).sort();
  return names.flatMap((name) => filesBelow(`${path}/${name}`));
}

/**
 * @param {string} program
 * @param {string[]} args
 */
export function call(program, args) {
  const { BUN_OPTIONS: _, NODE_OPTIONS: __, ...env } = process.env;
  const done = spawnSync(program, args, {
    cwd: root,
    encoding: "utf8",
    timeout: oneBuildMs,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...env,
      WRANGLER_SEND_METRICS: "false",
      WRANGLER_HIDE_BANNER: "true",
      WRANGLER_LOG_PATH: join(places.dist, "wrangler-logs"),
    },
  });
  if (done.status === 0) return;
  process.stderr.write(`${done.stdout ?? ""}${done.stderr ?? ""}`);
  const why = done.error?.message ?? `it ended with ${done.signal ?? done.status}`;
  throw new Refusal(`${basename(program)} ${args[0]} failed (${why}); what it said stands above`);
}

if (isProgram(import.meta.url)) {
  await run(async () => {
    await install();
    await build();
  });
}
