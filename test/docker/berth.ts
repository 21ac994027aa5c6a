/**
 * Owns a Berth that `wrangler dev` serves over a real Docker engine, and a look at its containers.
 * Does not own the engine: run.js does. Whoever starts one stops it, and is told what its end left behind.
 */
import { spawn, spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { expect } from "vitest";
import { places, root, tools } from "../../container/launch/places.js";
import { contractSizes } from "../contract/sizes.ts";
import { otherKey } from "../system/api/contract-world.ts";
import { alive, treeOf } from "../system/processes.ts";
import { cleanEnvironment, type Said, Server } from "../system/server.ts";
import { until } from "../system/until.ts";
import { Docker } from "./docker.js";

type Facts = { command: string; host?: string; isOwn: boolean; base?: string; companion?: string };

const readyWithinMs = 150_000;

export const facts = JSON.parse(process.env.BERTH_TEST_DOCKER ?? "{}") as Facts;
export const docker = new Docker(facts.command, facts.host);

/** Where it is kept over a restart, and under which name its containers run. */
export type Home = { folder: string; name: string };

export type Box = {
  name: string;
  state: string;
  exitCode: number;
  restarts: number;
  /** Of its first process, as the engine sees it. */
  pid: number;
  startId: string | undefined;
};

export function newHome(): Home {
  const folder = mkdtempSync(join(tmpdir(), "berth-wrangler-"));
  const key = `berth_local_${randomBytes(24).toString("base64url")}`;
  writeFileSync(join(folder, "key"), key, { mode: 0o600 });
  const secrets = {
    BERTH_API_KEYS: `local:${sha256(key)},other:${sha256(otherKey)}`,
    BERTH_SECRET: key,
    BERTH_SIZES: contractSizes,
  };
  const lines = Object.entries(secrets).map(([name, value]) => `${name}="${value}"\n`);
  writeFileSync(join(folder, "bindings.env"), lines.join(""), { mode: 0o600 });
  return { folder, name: `berth-test-${randomBytes(4).toString("hex")}` };
}

/** `bundle` is the Worker, in one file: as it would be deployed, unless another is given. */
export async function startBerth(
  { folder, name }: Home,
  bundle: string = places.worker,
): Promise<Server> {
  const file = join(folder, "wrangler.toml");
  // A copy, alone in its folder: wrangler begins anew at each change beside it.
  mkdirSync(join(folder, "worker"), { recursive: true });
  copyFileSync(bundle, join(folder, "worker/index.js"));
  writeFileSync(file, configOf(name, "worker/index.js"));
  const child = spawn(
    "setpriv",
    [
      "--pdeathsig",
      "TERM",
      "--",
      tools.node,
      tools.wrangler,
      "dev",
      ...["--config", file, "--ip", "127.0.0.1", "--port", "0", "--inspector-port", "0"],
      ...["--env-file", join(folder, "bindings.env"), "--persist-to", join(folder, "objects")],
      "--show-interactive-dev-session=false",
    ],
    { cwd: root, env: environment(folder), stdio: ["ignore", "pipe", "pipe"], detached: true },
  );
  const said: Said = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk) => (said.stdout += chunk));
  child.stderr.on("data", (chunk) => (said.stderr += chunk));
  let over = false;
  const ended = new Promise<Said & { code: number | null; signal: string | null }>(
    (resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code, signal) => {
        over = true;
        resolve({ ...said, code, signal });
      });
    },
  );
  const url = () => /Ready on (http:\/\/\S+)/.exec(said.stdout)?.[1];
  const isReady = () => over || url() !== undefined;
  await until("wrangler dev serves", isReady, readyWithinMs).catch(() => child.kill("SIGKILL"));
  const at = url();
  if (at === undefined) throw new Error(`wrangler dev ended: ${said.stdout}\n${said.stderr}`);
  return new Server(at, folder, { child, said, ended }, false);
}

/** At once, with everything below it: nothing is put in order. */
export async function kill(server: Server): Promise<void> {
  for (const { pid } of treeOf(server.launched.child.pid ?? -1).reverse()) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It ended with the one before.
    }
  }
  await server.ended();
}

/** In order; what wrangler leaves behind then goes too, and nothing is left of either. */
export async function endBerth(home: Home, server: Server | undefined): Promise<void> {
  const tree = server?.processes() ?? [];
  server?.signal("SIGTERM");
  await server?.ended();
  removeContainers(home);
  rmSync(home.folder, { recursive: true, force: true });
  await until("its processes are gone", () => alive(tree).length === 0);
  expect([...boxesOf(home), ...companionsOf(home)]).toEqual([]);
}

/** As if the machine below had been exchanged. */
export function removeContainers({ name }: Home): void {
  const names = namesOf(name);
  if (names.length > 0) docker.say("rm", "--force", "--volumes", ...names);
}

/** Every container of this Berth, companions left out. */
export function boxesOf({ name }: Home): Box[] {
  const names = namesOf(name).filter((one) => !one.endsWith("-proxy"));
  if (names.length === 0) return [];
  // One that ends meanwhile is missing from what is said, and the rest is there.
  const said = docker.call(["inspect", ...names]).stdout;
  return (JSON.parse(said) as Inspected[]).map((one) => ({
    name: one.Name.slice(1),
    state: one.State.Status,
    exitCode: one.State.ExitCode,
    restarts: one.RestartCount,
    pid: one.State.Pid,
    startId: startIdIn(one.Config.Env),
  }));
}

export function companionsOf({ name }: Home): string[] {
  return namesOf(name).filter((one) => one.endsWith("-proxy"));
}

/** The container that runs this life of a sandbox. */
export function boxOf(home: Home, incarnation: string): Box {
  const found = boxesOf(home).find(({ startId }) => incarnation.startsWith(`${startId}.`));
  if (found === undefined) throw new Error(`no container runs the life ${incarnation}`);
  return found;
}

type Inspected = {
  Name: string;
  RestartCount: number;
  State: { Status: string; ExitCode: number; Pid: number };
  Config: { Env: string[] };
};

function namesOf(name: string): string[] {
  const filter = `name=^/?workerd-${name}-`;
  return docker.lines("ps", "--all", "--format", "{{.Names}}", "--filter", filter);
}

function startIdIn(env: string[]): string | undefined {
  const document = env.find((line) => line.startsWith("BERTH_BOOT="))?.slice("BERTH_BOOT=".length);
  return document === undefined ? undefined : JSON.parse(document).startId;
}

/** A Worker of these tests, bundled as wrangler would. */
export function bundle({ folder, name }: Home, main: string): string {
  const file = join(folder, "bundle.toml");
  writeFileSync(file, configOf(name, join(root, main)).replace("no_bundle = true\n", ""));
  const outdir = join(folder, "bundle");
  const args = ["deploy", "--dry-run", "--containers-rollout=none", "--config", file];
  const env = environment(folder);
  const done = spawnSync(tools.node, [tools.wrangler, ...args, "--outdir", outdir], { env });
  if (done.status !== 0) throw new Error(`wrangler did not bundle ${main}: ${done.stderr}`);
  return join(outdir, `${basename(main, ".ts")}.js`);
}

/** The project's own configuration, from anywhere, and with the base image that there is. */
function configOf(name: string, main: string): string {
  const dockerfile = join(root, "container/Dockerfile");
  const vars = facts.base === undefined ? "" : `, build_vars = { BASE = "${facts.base}" }`;
  const image = `{ dockerfile = "${dockerfile}", build_context = "${root}"${vars} }`;
  return [
    [/^name = "berth"$/m, `name = "${name}"`],
    [/^main = .*$/m, `main = "${main}"\nno_bundle = true`],
    [/^images\.default = .*$/m, `images.default = ${image}`],
  ].reduce(
    (toml, [what = "", by]) => {
      if (!(what as RegExp).test(toml)) throw new Error(`wrangler.toml has no ${what}`);
      return toml.replace(what, by as string);
    },
    readFileSync(join(root, "wrangler.toml"), "utf8"),
  );
}

function environment(folder: string): Record<string, string> {
  const standIn = {
    WRANGLER_DOCKER_BIN: join(root, "test/docker/stand-in-docker.sh"),
    BERTH_TEST_DOCKER_COMMAND: facts.command,
    MINIFLARE_CONTAINER_EGRESS_IMAGE: facts.companion ?? "",
  };
  return {
    ...cleanEnvironment(facts.companion === undefined ? {} : standIn),
    ...(facts.host === undefined
      ? {}
      : { DOCKER_HOST: facts.host, WRANGLER_DOCKER_HOST: facts.host }),
    WRANGLER_SEND_METRICS: "false",
    WRANGLER_LOG_PATH: join(folder, "logs"),
    CLOUDFLARE_CF_FETCH_ENABLED: "false",
    NO_COLOR: "1",
  };
}

function sha256(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}
