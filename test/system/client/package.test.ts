import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { root, tools } from "../../../container/launch/paths.js";
import { until } from "../../until.ts";
import { startSecondWorker } from "../api/second-worker.ts";
import { cleanEnvironment } from "../server.ts";
import { useSharedServer } from "../shared-server.ts";
import { InstalledPackage } from "./installed-package.ts";

let made: InstalledPackage | undefined;
const installed = () => {
  if (made === undefined) throw new Error("the package is not installed");
  return made;
};

/** What a first program would do, in JavaScript, with what a user has. */
const program = `
import { BerthError, connect } from "@berth-sandbox/berth";
const berth = connect({ url: process.env.BERTH, key: process.env.KEY });
const sandbox = await berth.create();
const { state } = await sandbox.waitUntilRunning();
const bytes = new Uint8Array(3_000_000).map((_, n) => n);
const uploaded = [];
await sandbox.files.write("up/a b.bin", new Blob([bytes]), { progress: (p) => uploaded.push(p) });
const { stdout } = await sandbox.exec("wc -c < 'up/a b.bin'");
const down = (await sandbox.files.read("up/a b.bin")).length;
const started = await sandbox.processes.start("echo out; echo err >&2; exit 3");
const events = [];
for await (const event of started.logs()) events.push(event.type === "output" ? event.stream : event.exitCode);
const refused = await sandbox.files.read("nowhere").catch((error) => error);
await sandbox.delete();
console.log(JSON.stringify({
  node: process.version, state, stdout, down, events,
  progress: uploaded.at(-1), isTyped: refused instanceof BerthError, code: refused.code,
}));
`;

/** What users of other SDKs type first: write a script, stream it, serve a port, read back, list, end. */
const guessed = `
import { Berth } from "@berth-sandbox/berth";
const sandbox = await Berth.connect().create();
await sandbox.files.write("count.sh", "for n in 1 2 3; do echo $n; done; echo done > result.txt");
const { exitCode } = await sandbox.exec("sh count.sh", { onStdout: (text) => process.stdout.write(text) });
const server = await sandbox.processes.start("python3 -m http.server 8000 --bind 127.0.0.1");
await server.wait({ for: "port:8000" });
const { pathUrl } = await sandbox.ports.open(8000);
console.log(exitCode, (await fetch(pathUrl)).status);
console.log(await sandbox.files.readText("result.txt"));
for (const { path } of await sandbox.files.list()) console.log(path);
await server.kill();
await sandbox.delete();
`.trim();

const consumer = `
import { BerthError, connect, type Berth, type CallOptions, type ExecResult, type Process, type Sandbox } from "@berth-sandbox/berth";
const berth: Berth = connect({ url: "http://127.0.0.1:1", key: () => "k" });
export async function use(signal: NonNullable<CallOptions["signal"]>): Promise<string> {
  const sandbox: Sandbox = await berth.create({ scope: { repo: "a" }, metadata: { a: "b" } }, { signal });
  const { state } = await sandbox.get();
  const all: "starting" | "running" | "pausing" | "paused" | "failed" | "destroying" | "destroyed" = state;
  const result: ExecResult = await sandbox.exec({ argv: ["true"] }, { signal, waitMs: 5, answerWithinMs: 5 });
  const started: Process = await sandbox.processes.start({ command: "true" });
  for await (const event of started.logs()) if (event.type === "exit") break;
  await started.wait({ for: "port:80" });
  // @ts-expect-error a condition is not any text
  await started.wait({ for: "prot:80" });
  const text: string = await sandbox.files.readText("a");
  const lease = await sandbox.lease.hold({ holder: "me" });
  await sandbox.stop({ lease: lease.token });
  // @ts-expect-error a command is text
  await sandbox.exec({ command: 5 });
  // @ts-expect-error there is no such option
  await sandbox.exec({ command: "true" }, { wait: 5 });
  // @ts-expect-error nor is there such a state
  if (state === "sleeping") throw new BerthError("internal", state);
  return result.stdout + String(result.exitCode) + text + all;
}
`;

describe("the package, installed in an empty project", () => {
  beforeAll(async () => {
    made = await InstalledPackage.fromSources();
    // Packing compiles all types twice, which takes minutes on a machine that does much else.
  }, 400_000);
  afterAll(() => made?.remove());

  it("[SD8] is the only installed package, and contains the SDK, its types and the command", () => {
    const packages = readdirSync(join(installed().project, "node_modules"));
    expect(packages.filter((name) => !name.startsWith("."))).toEqual(["@berth-sandbox"]);
    const files = readdirSync(installed().package, { recursive: true, encoding: "utf8" });
    const kinds = new Set(
      files.map((name) => name.replace(/\/(types|server|command)\/.*/, "/$1/…")),
    );
    expect([...kinds].sort()).toEqual([
      "LICENSE",
      "README.md",
      "dist",
      "dist/package",
      "dist/package/berth.js",
      "dist/package/client.js",
      "dist/package/command",
      "dist/package/command/…",
      "dist/package/licenses.txt",
      "dist/package/serve.js",
      "dist/package/server",
      "dist/package/server/…",
      "dist/package/types",
      "dist/package/types/…",
      "package.json",
      "wrangler.toml",
    ]);
    const types = files.filter((name) => name.endsWith(".d.ts"));
    expect(types.length).toBeGreaterThan(20);
    for (const name of types) {
      expect(readFileSync(join(installed().package, name), "utf8"), name).not.toMatch(/zod|\bz\./);
    }
  });

  it("[SD8] runs in the machine's own Node against a real Berth", async () => {
    await using server = await useSharedServer();
    installed().write("first.js", program);
    const env = { BERTH: server.url, KEY: server.key };
    const { code, stdout, stderr } = await installed().run("node", ["first.js"], env);
    expect(stderr).toBe("");
    expect(code).toBe(0);
    const result = JSON.parse(stdout);
    expect(Number(result.node.slice(1).split(".")[0])).toBeGreaterThanOrEqual(20);
    expect(result).toMatchObject({
      state: "running",
      stdout: "3000000\n",
      down: 3_000_000,
      progress: { bytes: 3_000_000, total: 3_000_000 },
      isTyped: true,
      code: "file_not_found",
    });
    expect(result.events.toSorted()).toEqual([3, "stderr", "stdout"]);
  });

  it("[SD8] runs the first program of the guide", async () => {
    const page = readFileSync(join(root, "docs/guide/sdk.md"), "utf8");
    const example = /^## A first program\n[\s\S]*?```js\n([\s\S]*?)```/m.exec(page)?.[1] ?? "";
    expect(example).toContain("waitUntilRunning");
    await using server = await useSharedServer();
    installed().write("example.js", example);
    const env = { BERTH_URL: server.url, BERTH_KEY: server.key };
    const { code, stdout, stderr } = await installed().run("node", ["example.js"], env);
    expect(stderr).toBe("");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^running\nhello\n 3\n/m);
    expect(stdout).toContain('"private":true');
    expect(stdout).toContain("step 3\n");
    expect(stdout).toMatch(/^file_not_found /m);
  });

  it("[SD8] runs the first session of the README", async () => {
    const page = readFileSync(join(root, "README.md"), "utf8");
    const example = /```js\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
    expect(example).toContain("files.write");
    await using server = await useSharedServer();
    installed().write("readme.mjs", example.replace("http://127.0.0.1:8787", server.url));
    const env = { BERTH_KEY: server.key };
    const { code, stdout, stderr } = await installed().run("node", ["readme.mjs"], env);
    expect([code, stdout, stderr]).toEqual([0, "hello 0\n", ""]);
  });

  it("[SD9] has types whose methods and fields say what they do", () => {
    const types = (path: string) =>
      readFileSync(join(installed().package, "dist/package/types", path), "utf8");
    const field = /\/\*\* [A-Z][^\n]*\. \*\/\n {4}timeoutMs\?: number/;
    expect(types("protocol/exec.d.ts")).toMatch(field);
    expect(types("protocol/verbs/derived.d.ts")).toMatch(/\/\*\* [A-Z][^\n]*\. \*\/\n {4}exec: /);
    expect(types("client/berth.d.ts")).toContain("static connect(");
  });

  it("[SD14] [SD17] runs what users of other sandboxes type first, in at most 13 lines", async () => {
    expect(guessed.split("\n").length).toBeLessThanOrEqual(13);
    await using server = await useSharedServer();
    installed().write("guessed.mjs", guessed);
    // As `npm start` leaves it for programs of the same user.
    const runtime = join(installed().project, "run");
    mkdirSync(join(runtime, "berth"), { recursive: true });
    copyFileSync(join(server.data, "server.json"), join(runtime, "berth/server.json"));
    const env = { XDG_RUNTIME_DIR: runtime };
    const { code, stdout, stderr } = await installed().run("node", ["guessed.mjs"], env);
    const files = "/workspace/count.sh\n/workspace/result.txt\n";
    expect([code, stdout, stderr]).toEqual([0, `1\n2\n3\n0 200\ndone\n\n${files}`, ""]);
  });

  it("[SD9] has types that a strict project can use without any other package or the DOM", async () => {
    installed().write("use.ts", consumer);
    const strict = ["--strict", "--noEmit", "--target", "es2022", "--types", "", "--lib", "es2022"];
    for (const resolution of ["nodenext", "preserve"]) {
      const args = [...strict, "--module", resolution, "use.ts"];
      const { code, stdout } = await installed().run(tools.node, [tools.tsc, ...args]);
      expect(stdout).toBe("");
      expect(code).toBe(0);
    }
  });

  it("[SD10] runs in a Worker, also over a binding in place of a network", async () => {
    const sdk = readFileSync(join(installed().package, "dist/package/client.js"), "utf8");
    // The bundle does not contain the schema library.
    expect(sdk).not.toContain("ZodObject");
    expect(sdk).not.toMatch(/\bfrom "|\brequire\(|\bprocess\.|\bBuffer\b/);
    await using worker = await startSecondWorker(`${sdk}
export default {
  async fetch(request, env) {
    const berth = connect({
      url: "http://berth.test",
      key: "of nobody: the binding says who calls",
      fetch: (url, init) => env.BERTH.fetch(url, init),
    });
    const sandbox = await berth.create();
    const stream = new Blob(["from a Worker"]).stream();
    const reported = [];
    await sandbox.files.write("a", { stream, bytes: 13 }, { progress: (p) => reported.push(p) });
    const { stdout } = await sandbox.exec("cat a");
    const { code } = await sandbox.process("none").get().catch((error) => error);
    const { state } = await sandbox.delete();
    return Response.json({ value: { stdout, code, state, reported } });
  },
};`);
    const { value } = await worker.send({});
    expect(value).toMatchObject({ stdout: "from a Worker", code: "not_found" });
    expect(value?.state).toMatch(/^destroy/);
    expect(value?.reported).toEqual([{ bytes: 13, total: 13 }]);
  });

  it("[SD11] installs the command", async () => {
    const berth = join(installed().project, "node_modules/.bin/berth");
    const help = await installed().run(berth, ["--help"]);
    expect(help).toMatchObject({ code: 0, stderr: "" });
    expect(help.stdout).toContain("berth <command>");
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    expect((await installed().run(berth, ["version"])).stdout).toContain(version);
  });

  it("[SD11] runs the command in the machine's own Node without a warning", async () => {
    await using server = await useSharedServer();
    const berth = join(installed().project, "node_modules/.bin/berth");
    await installed().run("git", ["init", "-q"]);
    const env = { HOME: installed().folder, BERTH_URL: server.url, BERTH_KEY: server.key };
    const ran = await installed().run(berth, ["exec", "--", "echo", "hello"], env);
    expect(ran).toEqual({ code: 0, stdout: "hello\n", stderr: "" });
  });

  it("[SD18] serves without a checkout, and the command and the SDK find that server by themselves", async () => {
    const { project, folder } = installed();
    installed().addOptionalPackages();
    const runtime = join(folder, "runtime");
    const env = cleanEnvironment({ HOME: folder, XDG_RUNTIME_DIR: runtime });
    const berth = join(project, "node_modules/.bin/berth");
    const args = ["--pdeathsig", "TERM", "--", berth, "serve", "--port", "0"];
    const server = spawn("setpriv", [...args, "--data", join(folder, "data")], {
      cwd: project,
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const ended = once(server, "close");
    let printed = "";
    for (const stream of [server.stdout, server.stderr]) {
      stream.on("data", (text) => {
        printed += text;
      });
    }
    try {
      const isReady = () => /^ready on /m.test(printed) || server.exitCode !== null;
      await until("it is ready", isReady, 60_000);
      expect(printed).toMatch(/^ready on http:\/\/127\.0\.0\.1:\d+$/m);
      await installed().run("git", ["init", "-q"]);
      const user = { HOME: folder, XDG_RUNTIME_DIR: runtime };
      const ran = await installed().run(berth, ["exec", "--", "echo", "hello"], user);
      expect(ran).toEqual({ code: 0, stdout: "hello\n", stderr: "" });
      installed().write(
        "screen.mjs",
        `import { connect } from "@berth-sandbox/berth";
const sandbox = await connect().create();
const terminal = await sandbox.terminals.create({ argv: ["sh", "-c", "echo drawn; read it"] });
while (!(await terminal.screen()).text.includes("drawn")) await new Promise((next) => setTimeout(next, 50));
const [fork] = await sandbox.fork();
console.log(fork.info.state);`,
      );
      const program = await installed().run("node", ["screen.mjs"], user);
      expect(program).toEqual({ code: 0, stdout: "running\n", stderr: "" });
    } finally {
      server.kill("SIGTERM");
      await ended;
    }
    expect(server.exitCode).toBe(0);
    expect(existsSync(join(runtime, "berth/server.json"))).toBe(false);
  });
});
