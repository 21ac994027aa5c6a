/**
 * A Berth that `wrangler dev` serves over a real Docker engine, and functions to inspect its containers. run.js
 * starts the engine.
 */
import { spawn, spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { expect } from "vitest";
import { paths, root, tools } from "../../container/launch/paths.js";
import { contractSizes } from "../contract/sizes.ts";
import { otherKey } from "../system/api/contract-world.ts";
import { alive, treeOf } from "../system/processes.ts";
import { type Answer, cleanEnvironment, type Output, Server } from "../system/server.ts";
import { until } from "../until.ts";
import { Docker } from "./docker.js";

type DockerFacts = {
  command: string;
  host?: string;
  isOwn: boolean;
  base?: string;
  companion?: string;
};

const readyTimeoutMs = 150_000;

export const facts = JSON.parse(process.env.BERTH_TEST_DOCKER ?? "{}") as DockerFacts;
export const docker = new Docker(facts.command, facts.host);

/** Its data folder, kept across restarts, and the name prefix of its containers. */
export type BerthHome = { folder: string; name: string };

type DockerContainer = {
  name: string;
  state: string;
  exitCode: number;
  restarts: number;
  /** The PID of its first process on the machine. */
  pid: number;
  startId: string | undefined;
};

export function newHome(): BerthHome {
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

/** `bundle` is the Worker as one file; by default the one that would be deployed. */
export async function startBerth(
  { folder, name }: BerthHome,
  bundle: string = paths.worker,
): Promise<Server> {
  const file = join(folder, "wrangler.toml");
  // A copy in its own folder, because wrangler reloads after each change in that folder.
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
  const output: Output = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk) => (output.stdout += chunk));
  child.stderr.on("data", (chunk) => (output.stderr += chunk));
  let hasEnded = false;
  const ended = new Promise<Output & { code: number | null; signal: string | null }>(
    (resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code, signal) => {
        hasEnded = true;
        resolve({ ...output, code, signal });
      });
    },
  );
  const url = () => /Ready on (http:\/\/\S+)/.exec(output.stdout)?.[1];
  const isReady = () => hasEnded || url() !== undefined;
  await until("wrangler dev serves", isReady, readyTimeoutMs).catch(() => child.kill("SIGKILL"));
  const readyUrl = url();
  if (readyUrl === undefined)
    throw new Error(`wrangler dev ended: ${output.stdout}\n${output.stderr}`);
  return new Server(readyUrl, folder, { child, output, ended }, false);
}

/** Kills it at once with everything below it. */
export async function kill(server: Server): Promise<void> {
  for (const { pid } of treeOf(server.launched.child.pid ?? -1).reverse()) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It ended with its parent.
    }
  }
  await server.ended();
}

/** Ends it in order, removes what wrangler leaves behind, and checks that nothing is left. */
export async function endBerth(home: BerthHome, server: Server | undefined): Promise<void> {
  const tree = server?.processes() ?? [];
  server?.signal("SIGTERM");
  await server?.ended();
  removeContainers(home);
  rmSync(home.folder, { recursive: true, force: true });
  await until("its processes are gone", () => alive(tree).length === 0);
  expect([...containersOf(home), ...companionsOf(home)]).toEqual([]);
}

/** Removes all containers, as if the machine had been replaced. */
export function removeContainers({ name }: BerthHome): void {
  const names = namesOf(name);
  if (names.length > 0) docker.run("rm", "--force", "--volumes", ...names);
}

/** Every container of this Berth except companions. */
export function containersOf({ name }: BerthHome): DockerContainer[] {
  const names = namesOf(name).filter((container) => !container.endsWith("-proxy"));
  if (names.length === 0) return [];
  // A container that ends meanwhile is missing from the output; the others are there.
  const output = docker.call(["inspect", ...names]).stdout;
  return (JSON.parse(output) as Inspected[]).map((container) => ({
    name: container.Name.slice(1),
    state: container.State.Status,
    exitCode: container.State.ExitCode,
    restarts: container.RestartCount,
    pid: container.State.Pid,
    startId: startIdIn(container.Config.Env),
  }));
}

function companionsOf({ name }: BerthHome): string[] {
  return namesOf(name).filter((container) => container.endsWith("-proxy"));
}

/** The container that runs this incarnation of a sandbox. */
export function containerRunning(home: BerthHome, incarnation: string): DockerContainer {
  const found = containersOf(home).find(({ startId }) => incarnation.startsWith(`${startId}.`));
  if (found === undefined) throw new Error(`no container runs the incarnation ${incarnation}`);
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

/** Bundles a test Worker as wrangler would. */
export function bundle({ folder, name }: BerthHome, main: string): string {
  const file = join(folder, "bundle.toml");
  writeFileSync(file, configOf(name, join(root, main)).replace("no_bundle = true\n", ""));
  const outdir = join(folder, "bundle");
  const args = ["deploy", "--dry-run", "--containers-rollout=none", "--config", file];
  const env = environment(folder);
  const result = spawnSync(tools.node, [tools.wrangler, ...args, "--outdir", outdir], { env });
  if (result.status !== 0) throw new Error(`wrangler did not bundle ${main}: ${result.stderr}`);
  return join(outdir, `${basename(main, ".ts")}.js`);
}

/** The project's configuration with absolute paths and the available base image. */
function configOf(name: string, main: string): string {
  const dockerfile = join(root, "container/Dockerfile");
  const vars = facts.base === undefined ? "" : `, build_vars = { BASE = "${facts.base}" }`;
  const image = `{ dockerfile = "${dockerfile}", build_context = "${root}"${vars} }`;
  return [
    [/^name = "berth"$/m, `name = "${name}"`],
    [/^main = .*$/m, `main = "${main}"\nno_bundle = true`],
    [/^images\.default = .*$/m, `images.default = ${image}`],
  ].reduce(
    (toml, [pattern = "", replacement]) => {
      if (!(pattern as RegExp).test(toml)) throw new Error(`wrangler.toml has no ${pattern}`);
      return toml.replace(pattern, replacement as string);
    },
    readFileSync(join(root, "wrangler.toml"), "utf8"),
  );
}

function environment(folder: string): Record<string, string> {
  const shim = {
    WRANGLER_DOCKER_BIN: join(root, "test/docker/docker-shim.sh"),
    BERTH_TEST_DOCKER_COMMAND: facts.command,
    MINIFLARE_CONTAINER_EGRESS_IMAGE: facts.companion ?? "",
  };
  return {
    ...cleanEnvironment(facts.companion === undefined ? {} : shim),
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

/** Calls that the tests repeat: a command that succeeds, a state, a checkpoint. */
export function callsOf(server: () => Server) {
  const call = (method: string, id: string, rest = "", body?: unknown) =>
    server().call(method, `/v1/sandboxes/${id}${rest}`, body);
  return {
    call,
    viewOf: async (id: string): Promise<Answer["body"]> => (await call("GET", id)).body,
    /** Returns the output of a command that must succeed. */
    async outputOf(id: string, command: string): Promise<string> {
      const { body } = await server().exec(id, command);
      expect(body, command).toMatchObject({ exitCode: 0, stderr: "" });
      return String(body.stdout);
    },
    async checkpoint(id: string, name: string): Promise<string> {
      const { status, body } = await call("POST", id, "/checkpoints", { name });
      expect(status, JSON.stringify(body)).toBe(201);
      return String(body.id);
    },
    /** Returns the states that it went through, from its events. */
    async states(id: string): Promise<unknown[]> {
      const { body } = await call("GET", id, "/events?limit=1000");
      const { events } = body as unknown as { events: { event: Record<string, unknown> }[] };
      const states = events.filter(({ event }) => event.type === "state");
      return states.map(({ event }) => event.state);
    },
  };
}
