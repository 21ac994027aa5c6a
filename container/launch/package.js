/**
 * Builds what `npm pack` packs: the SDK and the command, each as one file without dependencies, and the SDK's types.
 * npm runs it before a pack.
 */
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { runTool } from "./build.js";
import { install } from "./install.js";
import { withCheckoutLock } from "./lock.js";
import { writeTypes } from "./package-types.js";
import { paths, root, tools } from "./paths.js";
import { isMainModule, printStatus, runProgram, UserError } from "./program.js";

async function makePackage() {
  const folder = mkdtempSync(join(paths.dist, "packing-"));
  try {
    bundle("src/client/index.ts", join(folder, "client.js"), ["--target=browser"]);
    const asProgram = ["--target=node", "--banner=#!/usr/bin/env node"];
    bundle("src/cli/main.ts", join(folder, "berth.js"), asProgram);
    chmodSync(join(folder, "berth.js"), 0o755);
    writeFileSync(join(folder, "licenses.txt"), licensesOf(join(folder, "berth.js")));
    await writeTypes(join(folder, "types"));
    rmSync(paths.package, { recursive: true, force: true });
    chmodSync(folder, 0o755);
    renameSync(folder, paths.package);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  printStatus("Built the package in dist/package.");
}

/** @type {(entry: string, outfile: string, options: string[]) => void} */
function bundle(entry, outfile, options) {
  runTool(tools.bun, [
    "build",
    "--format=esm",
    ...options,
    "--outfile",
    outfile,
    join(root, entry),
  ]);
}

/**
 * Collects the licenses of the packages that a bundle contains.
 * @param {string} path
 */
function licensesOf(path) {
  const bundled = readFileSync(path, "utf8").matchAll(
    /^\/\/ node_modules\/((?:@[^/]+\/)?[^/]+)\//gm,
  );
  const names = [...new Set([...bundled].map(([, name = ""]) => name))].sort();
  return names.map((name) => `${name}\n\n${licenseOf(name)}\n`).join("\n");
}

/** @param {string} name */
function licenseOf(name) {
  const folder = join(root, "node_modules", name);
  const file = readdirSync(folder).find((entry) => /^licen[cs]e(\.|$)/i.test(entry));
  if (file !== undefined) return readFileSync(join(folder, file), "utf8").trim();
  const { license, author } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  if (license === undefined) throw new UserError(`${name} would be packed, but names no license.`);
  return `License ${license}${author === undefined ? "" : `, by ${author.name ?? author}`}`;
}

if (isMainModule(import.meta.url)) {
  await runProgram(async () => {
    await install();
    await withCheckoutLock(makePackage);
  });
}
