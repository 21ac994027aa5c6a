/** Runs `npm run check`: types of every project, lint and format, and the tidy tests, two at a time. */
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { install } from "../container/launch/install.js";
import { root, tools } from "../container/launch/paths.js";
import { runProgram } from "../container/launch/program.js";

/** @typedef {{ name: string, args: string[] }} Check */

const concurrency = 2;
const checkTimeoutMs = 5 * 60_000;

await runProgram(async () => {
  await install();
  const began = Date.now();
  /** @type {Check[]} */
  const checks = [
    { name: "tidy tests", args: [tools.vitest, "run", "--project", "unit", "test/tidy/"] },
    { name: "lint and format", args: [tools.biome, "check", "--error-on-warnings", "."] },
    ...projectsBelow(root).map((project) => ({
      name: `types of ${project}`,
      args: [tools.tsc, "-p", project],
    })),
  ];
  const waiting = [...checks];
  let failed = 0;
  const worker = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      if (!(await passes(next))) failed += 1;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  const verdict = failed === 0 ? "all is well" : `${failed} of ${checks.length} failed`;
  process.stdout.write(`check: ${verdict} (${seconds(began)})\n`);
  return failed === 0 ? 0 : 1;
});

/**
 * @param {string} folder
 * @returns {string[]}
 */
function projectsBelow(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      return entry.name === "node_modules" || entry.name.startsWith(".") ? [] : projectsBelow(path);
    }
    const isProject = entry.name === "tsconfig.json" && folder !== root;
    return isProject ? [relative(root, dirname(path))] : [];
  });
}

/**
 * Prints the output of a check only when it fails.
 * @param {Check} check
 * @returns {Promise<boolean>}
 */
function passes({ name, args }) {
  const began = Date.now();
  const [program = "", ...rest] = args;
  const child = spawn("setpriv", ["--pdeathsig", "TERM", "--", program, ...rest], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: checkTimeoutMs,
    // The tools call `node` by name and need a newer one than the machine may have.
    env: { ...process.env, PATH: `${dirname(tools.node)}:${process.env.PATH}` },
  });
  let output = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  child.stderr.on("data", (chunk) => (output += chunk));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      process.stdout.write(`${code === 0 ? "ok    " : "FAILED"} ${name} (${seconds(began)})\n`);
      if (code !== 0) process.stdout.write(output);
      resolve(code === 0);
    });
  });
}

/** @param {number} since */
function seconds(since) {
  return `${((Date.now() - since) / 1000).toFixed(1)} s`;
}
