/**
 * `berth serve`: the server of the npm package. workerd and Bun are packages that npm installs with it; the agent is
 * compiled once for each version, because a compiled program is too large to be packed and differs by machine.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { paths, root, tools } from "./paths.js";
import { printStatus, UserError } from "./program.js";
import { runServer } from "./serve.js";
import { prepareWorkerd } from "./worker-process.js";

const server = join(root, "dist/package/server");
const require = createRequire(join(root, "package.json"));
const { name } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** A package's program, and those of the packages that it would copy it from: npm may not have run its script. */
const programs = {
  bun: [
    "bun/bin/bun.exe",
    ...["x64", "x64-baseline", "aarch64"].map((arch) => `@oven/bun-linux-${arch}/bin/bun`),
  ],
  workerd: ["64", "arm64"].map((arch) => `@cloudflare/workerd-linux-${arch}/bin/workerd`),
};

await runServer("berth serve", prepareWorkerd, {
  data: join(process.env.XDG_DATA_HOME || join(homedir(), ".local/share"), "berth"),
  dataFolder: "",
  berth: `npx ${name}`,
  prepare(data) {
    tools.bun = findProgram("bun");
    tools.workerd = findProgram("workerd");
    paths.worker = join(server, "worker.js");
    paths.dashboard = join(server, "dashboard");
    paths.engine = join(server, "engine/main.js");
    paths.agent = compileAgent(join(data, "bin"));
  },
  hint: (lines, { firstRun }) =>
    firstRun ? `Try it in the folder of a repository:\n${lines}` : undefined,
});

/** @param {keyof typeof programs} program */
function findProgram(program) {
  for (const path of programs[program]) {
    const [scope = "", part = ""] = path.split("/");
    const of = scope.startsWith("@") ? `${scope}/${part}` : scope;
    const folder = require.resolve.paths(of)?.find((folder) => existsSync(join(folder, of)));
    const found = join(folder ?? "", path);
    if (folder !== undefined && spawnSync(found, ["--version"]).status === 0) return found;
  }
  throw new UserError(
    `The package ${program} is missing or does not run on this machine. Install ${name} again, without \`--omit=optional\`, on Linux with glibc.`,
  );
}

/**
 * Returns the path of the agent's binary, which is compiled if this version has none in the folder.
 * @param {string} folder
 */
function compileAgent(folder) {
  const sources = join(server, "agent");
  const hash = createHash("sha256").update(
    readFileSync(tools.bun.replace(/[^/]*$/, "../package.json")),
  );
  for (const file of readdirSync(sources).sort())
    hash.update(`\0${file}\0`).update(readFileSync(join(sources, file)));
  const binary = `berth-agent-${hash.digest("hex").slice(0, 16)}`;
  const path = join(folder, binary);
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  const startedAt = Date.now();
  const temporary = `${path}.${process.pid}`;
  const { BUN_OPTIONS: _, ...env } = process.env;
  const args = [
    ...["build", "--compile", "--minify", "--splitting"],
    ...["--no-compile-autoload-bunfig", "--no-compile-autoload-dotenv"],
    ...[join(sources, "main.js"), "--outfile", temporary],
  ];
  const { status, stderr } = spawnSync(tools.bun, args, { cwd: folder, env, encoding: "utf8" });
  if (status !== 0)
    throw new UserError(`The agent could not be compiled into ${folder}: ${stderr.trim()}`);
  renameSync(temporary, path);
  // A server of another version that still runs keeps its file until it ends.
  for (const old of readdirSync(folder))
    if (old !== binary) rmSync(join(folder, old), { force: true });
  printStatus(`Compiled the agent in ${((Date.now() - startedAt) / 1000).toFixed(1)} s.`);
  return path;
}
