/**
 * Owns what `npm pack` packs: the SDK and the command, each one file that needs no other package, and the SDK's types.
 * Does not own which files of it a package.json names. Runs by itself before a pack.
 */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { call } from "./build.js";
import { install } from "./install.js";
import { takeLock } from "./lock.js";
import { writeTypes } from "./package-types.js";
import { places, root, tools } from "./places.js";
import { isProgram, Refusal, run, say } from "./say.js";

const waitForOtherMs = 5 * 60_000;

export async function makePackage() {
  await install();
  mkdirSync(places.dist, { recursive: true });
  const lock = takeLock(places.checkoutLock, { waitMs: waitForOtherMs });
  if ("heldBy" in lock) throw new Refusal(`process ${lock.heldBy} is still building here`);
  const folder = mkdtempSync(join(places.dist, "packing-"));
  try {
    bundle("src/client/index.ts", join(folder, "client.js"), ["--target=browser"]);
    const asProgram = ["--target=node", "--banner=#!/usr/bin/env node"];
    bundle("src/cli/main.ts", join(folder, "berth.js"), asProgram);
    chmodSync(join(folder, "berth.js"), 0o755);
    writeFileSync(join(folder, "licenses.txt"), licensesOf(join(folder, "berth.js")));
    writeTypes(join(folder, "types"));
    rmSync(places.package, { recursive: true, force: true });
    chmodSync(folder, 0o755);
    renameSync(folder, places.package);
  } finally {
    rmSync(folder, { recursive: true, force: true });
    lock.release();
  }
  say("made the package below dist/package");
}

/**
 * @param {string} entry
 * @param {string} outfile
 * @param {string[]} how
 */
function bundle(entry, outfile, how) {
  call(tools.bun, ["build", "--format=esm", ...how, "--outfile", outfile, join(root, entry)]);
}

/**
 * What others have written and this file has taken in: their terms go along.
 * @param {string} path
 */
function licensesOf(path) {
  const taken = readFileSync(path, "utf8").matchAll(/^\/\/ node_modules\/((?:@[^/]+\/)?[^/]+)\//gm);
  const names = [...new Set([...taken].map(([, name = ""]) => name))].sort();
  return names.map((name) => `${name}\n\n${licenseOf(name)}\n`).join("\n");
}

/** @param {string} name */
function licenseOf(name) {
  const folder = join(root, "node_modules", name);
  const file = readdirSync(folder).find((entry) => /^licen[cs]e(\.|$)/i.test(entry));
  if (file !== undefined) return readFileSync(join(folder, file), "utf8").trim();
  const { license, author } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  if (license === undefined) throw new Refusal(`${name} would be packed, and says no license`);
  return `License ${license}${author === undefined ? "" : `, by ${author.name ?? author}`}`;
}

if (isProgram(import.meta.url)) await run(makePackage);
