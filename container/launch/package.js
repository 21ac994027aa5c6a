/**
 * Builds what `npm pack` packs: the SDK and the command, each as one file without dependencies, the SDK's types, and the
 * server. npm runs it before a pack.
 */
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { build, runTool } from "./build.js";
import { install } from "./install.js";
import { withCheckoutLock } from "./lock.js";
import { writeTypes } from "./package-types.js";
import { paths, root, tools } from "./paths.js";
import { isMainModule, printStatus, runProgram, UserError } from "./program.js";

async function makePackage() {
  const folder = mkdtempSync(join(paths.dist, "packing-"));
  try {
    bundle("src/client/index.ts", join(folder, "client.js"), ["--target=browser"]);
    bundleCommand(folder);
    chmodSync(join(folder, "berth.js"), 0o755);
    bundleServer(folder);
    const bundled = readdirSync(folder, { recursive: true, encoding: "utf8" });
    const programs = bundled
      .filter((name) => name.endsWith(".js"))
      .map((name) => join(folder, name));
    writeFileSync(join(folder, "licenses.txt"), licensesOf([...programs, ...readableDashboard()]));
    await writeTypes(join(folder, "types"));
    rmSync(paths.package, { recursive: true, force: true });
    chmodSync(folder, 0o755);
    renameSync(folder, paths.package);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  printStatus("Built the package in dist/package.");
}

/**
 * Its commands are in files of their own, which are read when they are used.
 * @param {string} folder
 */
export function bundleCommand(folder) {
  const options = ["--format=esm", "--target=node", "--splitting", "--outdir", folder];
  const names = ["--entry-naming=berth.js", "--chunk-naming=command/[name]-[hash].js"];
  runTool(tools.bun, ["build", ...options, ...names, join(root, "src/cli/entry.ts")]);
  for (const name of readdirSync(join(folder, "command"))) {
    const path = join(folder, "command", name);
    writeFileSync(path, loadTlsLate(readFileSync(path, "utf8")));
  }
  const path = join(folder, "berth.js");
  writeFileSync(path, `#!/usr/bin/env node\n${readFileSync(path, "utf8")}`);
}

/**
 * The package `ws` loads TLS for every connection, which takes longer than a call to a server without it.
 * @param {string} program
 */
function loadTlsLate(program) {
  return program.replace(/^( *var )(https|tls) = __require\("\2"\);$/gm, (_, start, name) => {
    const used = name === "tls" ? "connect" : "request";
    return `${start}${name} = { get ${used}() { return __require("${name}").${used}; } };`;
  });
}

/**
 * What `berth serve` runs; see serve-package.js.
 * @param {string} folder
 */
function bundleServer(folder) {
  bundle("container/launch/serve-package.js", join(folder, "serve.js"), ["--target=node"]);
  const server = join(folder, "server");
  for (const program of ["", "copy/", "changes/"]) {
    const source = `container/engine/${program === "" ? "" : `snapshots/${program}`}main.ts`;
    bundle(source, join(server, `engine/${program}main.js`), ["--target=bun"]);
  }
  // Not minified: the names of the packages in it are read for their licenses.
  const options = [
    "build",
    "--format=esm",
    "--target=bun",
    "--splitting",
    "--outdir",
    join(server, "agent"),
  ];
  runTool(tools.bun, [...options, join(root, "container/agent/main.ts")]);
  copyFileSync(paths.worker, join(server, "worker.js"));
  cpSync(paths.dashboard, join(server, "dashboard"), { recursive: true });
}

/** The dashboard that is packed is minified: this one has the names of the packages in it. */
function readableDashboard() {
  const folder = join(paths.dist, "readable-dashboard");
  runTool(tools.bun, [
    ...["build", "--target=browser", "--splitting", "--outdir", folder],
    join(root, "src/dashboard/main.tsx"),
  ]);
  return readdirSync(folder).map((name) => join(folder, name));
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
 * Collects the licenses of the packages that the bundles contain.
 * @param {string[]} bundles
 */
function licensesOf(bundles) {
  const comment = /^\s*\/\/ (?:\.\.\/)*node_modules\/((?:@[^/]+\/)?[^/]+)\//gm;
  const bundled = bundles.flatMap((path) => [...readFileSync(path, "utf8").matchAll(comment)]);
  const names = [...new Set(bundled.map(([, name = ""]) => name))].sort();
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
    await build();
    await withCheckoutLock(makePackage);
  });
}
