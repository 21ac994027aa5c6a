/**
 * `npm run deploy`: checks what a deployment needs, makes the secrets of a first one, deploys, and prints the address
 * and a first call. `--check` only checks; `--dry-run` shows what would be deployed. Other arguments go to wrangler.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { build, buildImageAgent } from "./build.js";
import { checkDeployment } from "./deploy-checks.js";
import { makeSecrets, readSecrets, secretsFile } from "./deploy-secrets.js";
import { install } from "./install.js";
import { root, tools } from "./paths.js";
import { isMainModule, printStatus, runProgram, UserError } from "./program.js";

/** @param {string[]} args */
export async function deploy(args) {
  const isDryRun = args.includes("--dry-run");
  await install();
  const problems = checkDeployment(runTool, { needsAccount: !isDryRun });
  for (const { what, remedy } of problems) printStatus(`${what}\n    ${remedy}`);
  if (args.includes("--check")) {
    const secrets = readSecrets();
    const found = secrets === undefined ? "none yet; a deployment makes them" : "there";
    printStatus(`Secrets (${relative(root, secretsFile)}): ${found}.`);
    printStatus(problems.length === 0 ? "Everything is ready: npm run deploy" : "Not ready yet.");
    return problems.length === 0 ? 0 : 1;
  }
  if (problems.length > 0) throw new UserError("Nothing was deployed.");
  await build();
  await buildImageAgent();
  const rest = args.filter((arg) => arg !== "--check");
  if (isDryRun) return wrangler(["deploy", "--containers-rollout=none", ...rest]).status;
  const made = readSecrets() === undefined ? makeSecrets() : undefined;
  const folder = mkdtempSync(join(tmpdir(), "berth-deploy-"));
  try {
    const output = join(folder, "output.json");
    const { status } = wrangler(["deploy", "--secrets-file", secretsFile, ...rest], output);
    if (status !== 0) throw new UserError("`wrangler deploy` failed. Its output is above.");
    printFirstCall(addressIn(output), made);
    return 0;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @param {string} program
 * @param {string[]} args
 */
function runTool(program, args) {
  const file = program === "wrangler" ? tools.wrangler : program;
  const env = { ...process.env, WRANGLER_SEND_METRICS: "false" };
  const result = spawnSync(file, args, { cwd: root, env, encoding: "utf8", timeout: 60_000 });
  return { ok: result.status === 0, output: `${result.stdout ?? ""}${result.stderr ?? ""}` };
}

/**
 * @param {string[]} args
 * @param {string} [output]  where wrangler writes what it deployed
 */
function wrangler(args, output) {
  const report = output === undefined ? {} : { WRANGLER_OUTPUT_FILE_PATH: output };
  const env = { ...process.env, ...report };
  const { status } = spawnSync(tools.node, [tools.wrangler, ...args], {
    cwd: root,
    env,
    stdio: "inherit",
  });
  return { status: status ?? 1 };
}

/**
 * The first address in wrangler's report: one JSON object a line.
 * @param {string} file
 * @returns {string | undefined}
 */
export function addressIn(file) {
  const lines = readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "");
  const targets = lines.flatMap((line) => JSON.parse(line).targets ?? []);
  const address = targets.find((target) => typeof target === "string");
  return address?.startsWith("http") || address === undefined ? address : `https://${address}`;
}

/**
 * @param {string | undefined} address
 * @param {{ key: string } | undefined} made
 */
function printFirstCall(address, made) {
  if (made !== undefined) {
    printStatus("The key of this installation, shown once; only its hash was deployed:");
    process.stdout.write(`${made.key}\n`);
  }
  if (address === undefined) return printStatus("Deployed. wrangler's output names the address.");
  printStatus(`Deployed to ${address}. A first start may take a minute. Try it:`);
  const key = made?.key ?? "<your key>";
  process.stdout.write(
    `BERTH_URL=${address} BERTH_KEY=${key} npm run --silent berth -- run -- uname -a\n`,
  );
}

if (isMainModule(import.meta.url)) await runProgram(() => deploy(process.argv.slice(2)));
