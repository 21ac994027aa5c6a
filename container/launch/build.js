/** Builds the agent's binary and the Worker's bundle below dist/, each only if a hash of its sources has changed. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
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
import { withCheckoutLock } from "./lock.js";
import { paths, root, tools } from "./paths.js";
import { isMainModule, printStatus, runProgram, UserError } from "./program.js";

const buildTimeoutMs = 3 * 60_000;

/**
 * @typedef {object} Target
 * @property {string} name
 * @property {string[]} sources  files and folders below the root
 * @property {string[]} outputs
 * @property {(folder: string) => void} make  writes files of the outputs' names into the folder
 */

/** @type {Target[]} */
const targets = [
  {
    name: "the agent",
    sources: ["container/agent", "container/engine", "src/protocol", "package-lock.json"],
    outputs: [paths.agent],
    make: (folder) => compileAgent(join(folder, basename(paths.agent))),
  },
  {
    name: "the dashboard",
    sources: ["src/dashboard", "src/client", "src/protocol", "package-lock.json"],
    outputs: [paths.dashboard],
    make: (folder) => {
      const made = join(folder, basename(paths.dashboard));
      runTool(tools.bun, [
        ...[
          "build",
          "--target=browser",
          "--minify",
          "--splitting",
          "--outdir",
          join(made, "assets"),
        ],
        ...["--entry-naming=[name].[ext]", "--chunk-naming=part-[hash].[ext]"],
        ...["src/dashboard/main.tsx", "src/dashboard/main.css"],
      ]);
      for (const name of ["index.html", "assets/icon.svg"]) {
        copyFileSync(join(root, "src/dashboard", basename(name)), join(made, name));
      }
    },
  },
  {
    name: "the Worker",
    sources: ["src", "wrangler.toml", "package-lock.json"],
    outputs: [`${paths.worker}.map`, paths.worker],
    make: (folder) =>
      runTool(tools.node, [
        ...[tools.wrangler, "deploy", "--dry-run"],
        // Without this option wrangler needs Docker to build the image.
        "--containers-rollout=none",
        ...["--outdir", folder],
      ]),
  },
];

/** @type {Target} */
const imageAgent = {
  name: "the agent of the image",
  sources: ["container/agent", "container/engine", "src/protocol", "package-lock.json"],
  outputs: [paths.imageAgent],
  // Bun compiles for another machine with that machine's runtime, which it downloads from the registry once.
  make: (folder) =>
    compileAgent(join(folder, basename(paths.imageAgent)), ["--target=bun-linux-x64-baseline"]),
};

/** Call after `build`, before an image is built from container/Dockerfile. */
export async function buildImageAgent() {
  if (isImageMachine()) {
    mkdirSync(dirname(paths.imageAgent), { recursive: true });
    copyFileSync(paths.agent, paths.imageAgent);
  } else if (!isFresh(imageAgent)) {
    await withCheckoutLock(() => {
      if (!isFresh(imageAgent)) make(imageAgent);
    });
  }
}

function isImageMachine() {
  return process.platform === "linux" && process.arch === "x64";
}

/**
 * @param {string} file
 * @param {string[]} options
 */
function compileAgent(file, options = []) {
  runTool(tools.bun, [
    // With splitting each mode loads only its own code, which saves nearly 1 MB per agent.
    ...["build", "--compile", "--minify", "--splitting", ...options],
    // The agent must not read a bunfig.toml or .env in a user's working folder.
    ...["--no-compile-autoload-bunfig", "--no-compile-autoload-dotenv"],
    ...["container/agent/main.ts", "--outfile", file],
  ]);
}

/** Builds what changed. Several builds at once are safe: they take turns, and each file is renamed into place. */
export async function build() {
  if (targets.every(isFresh)) return;
  await withCheckoutLock(() => {
    for (const target of targets) if (!isFresh(target)) make(target);
  });
}

/** @param {Target} target */
function isFresh(target) {
  const stamp = stampOf(target);
  return (
    target.outputs.every((output) => existsSync(output)) &&
    existsSync(stamp) &&
    readFileSync(stamp, "utf8") === hashOf(target.sources)
  );
}

/** @param {Target} target */
function make(target) {
  const startedAt = Date.now();
  // Hashed before the build, so that a source that changes meanwhile causes another build.
  const hash = hashOf(target.sources);
  const folder = mkdtempSync(join(paths.dist, "making-"));
  try {
    target.make(folder);
    for (const output of target.outputs) {
      mkdirSync(dirname(output), { recursive: true });
      // A folder takes the place of none but an absent one.
      rmSync(output, { recursive: true, force: true });
      renameSync(join(folder, basename(output)), output);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  writeFileSync(stampOf(target), hash);
  printStatus(`Built ${target.name} in ${((Date.now() - startedAt) / 1000).toFixed(1)} s.`);
}

/** @param {Target} target */
function stampOf(target) {
  const name = target.name.replace(/^the /, "").replaceAll(" ", "-").toLowerCase();
  return join(paths.dist, `${name}.stamp`);
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
  if (found === undefined) return [];
  if (!found.isDirectory()) return [path];
  const names = readdirSync(join(root, path)).sort();
  return names.flatMap((name) => filesBelow(`${path}/${name}`));
}

/** @type {(program: string, args: string[]) => void} */
export function runTool(program, args) {
  const { BUN_OPTIONS: _, NODE_OPTIONS: __, ...env } = process.env;
  const result = spawnSync(program, args, {
    cwd: root,
    encoding: "utf8",
    timeout: buildTimeoutMs,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...env,
      WRANGLER_SEND_METRICS: "false",
      WRANGLER_HIDE_BANNER: "true",
      WRANGLER_LOG_PATH: join(paths.dist, "wrangler-logs"),
    },
  });
  if (result.status === 0) return;
  process.stderr.write(`${result.stdout ?? ""}${result.stderr ?? ""}`);
  const why = result.error?.message ?? `it ended with ${result.signal ?? result.status}`;
  throw new UserError(`\`${basename(program)} ${args[0]}\` failed (${why}). Its output is above.`);
}

if (isMainModule(import.meta.url)) {
  await runProgram(async () => {
    await install();
    await build();
    await buildImageAgent();
  });
}
