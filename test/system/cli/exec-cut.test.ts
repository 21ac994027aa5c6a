/** Tests a run whose connection is cut, or that gets Ctrl-C, while the checkout is sent or fetched. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer, connect as dial } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { connect, type Sandbox as SandboxHandle } from "../../../src/client/index.ts";
import { until } from "../../until.ts";
import { CutProxy } from "../client/cut-proxy.ts";
import { expectNothingLeft, useCliUser } from "./cli-user.ts";

const { server, user } = await useCliUser();

/** git in the sandbox reads its ignore list from here: a pipe that nobody writes to blocks it. */
const blockingPipe = "/tmp/hold";

async function prepareRepo(name: string): Promise<{ repo: string; sandbox: SandboxHandle }> {
  const repo = user.repo(name);
  const config = ["exec", "--json", "--", "git", "config", "core.excludesFile", blockingPipe];
  const document = await user.json<{ sandbox: string }>(config, { cwd: repo });
  return { repo, sandbox: connect(server).sandbox(document.sandbox) };
}

async function expectNoScript(sandbox: SandboxHandle): Promise<void> {
  await expectNothingLeft(sandbox);
  const { stdout } = await sandbox.exec({ command: "pgrep -f [b]erth-sync || echo none" });
  expect(stdout).toBe("none\n");
}

function exists(sandbox: SandboxHandle, path: string): Promise<boolean> {
  return sandbox.files.exists(path);
}

const readTrace = (file: string) => (existsSync(file) ? readFileSync(file, "utf8") : "");

test("[LV23] a connection that is cut while changes are fetched is restored, and each change comes once", async () => {
  await using proxy = await CutProxy.to(server.url);
  const { repo, sandbox } = await prepareRepo("cut");
  await sandbox.terminals.create({ id: "go", argv: ["sh", "-c", `read go; : > ${blockingPipe}`] });
  const trace = join(user.home, "cut-trace");
  const names = ".git/berth/leave.names";
  // The setting is a change, or the search for changes would end before it lists names.
  const command = `git config some.setting on; rm ${names}; mkfifo ${blockingPipe}; echo late > made; exit 3`;
  const env = { BERTH_URL: proxy.url, BERTH_TRACE: trace };
  const run = user.start(["exec", "--", "sh", "-c", command], { cwd: repo, env });
  await until("the command has ended", () => readTrace(trace).includes('"pull"'));
  await until("its changes are collected", () => exists(sandbox, names));
  // Cut silently: after a close that the server notices it would end the lease.
  proxy.cutSilently();
  expect(proxy.cuts).toBeGreaterThan(0);
  // The script is still the same run after the reconnect.
  await until("it has reconnected", () => proxy.open > 1);
  const live = await sandbox.terminal("go").attach();
  live.write(Buffer.from("\n"));
  expect(await run.ended).toMatchObject({ code: 3, stderr: "Changed here: made\n" });
  expect(readFileSync(join(repo, "made"), "utf8")).toBe("late\n");
  live.close();
  await expectNoScript(sandbox);
});

test.each(["alone", "inside of berth lock"])(
  "[LV11] Ctrl-C while the checkout is sent ends the run and its script in the sandbox at once: %s",
  async (kind) => {
    const { repo, sandbox } = await prepareRepo(`ctrl-c-${kind.length}`);
    const startedFile = ".git/berth/released";
    await sandbox.exec({ command: `mkfifo ${blockingPipe}; rm ${startedFile}` });
    await using lease =
      kind === "alone" ? undefined : await sandbox.lease.hold({ holder: "outer" });
    const env: Record<string, string> =
      lease === undefined ? {} : { BERTH_LEASE: lease.token, BERTH_LEASE_SANDBOX: sandbox.id };
    const run = user.start(["exec", "--", "true"], { cwd: repo, env });
    await until("the script runs", () => exists(sandbox, startedFile));
    run.child.kill("SIGINT");
    const killedAt = performance.now();
    expect(await run.ended).toMatchObject({ code: 130, stdout: "" });
    console.log(`${kind}: ended ${Math.round(performance.now() - killedAt)} ms after Ctrl-C`);
    if (lease !== undefined) {
      const findScripts = { command: "pgrep -f [b]erth-sync || echo none" };
      expect((await sandbox.exec(findScripts, { lease: lease.token })).stdout).toBe("none\n");
      await lease.release();
    }
    await expectNoScript(sandbox);
  },
);

test("[LV11] Ctrl-C during a stalled upload ends the run at once", async () => {
  const { repo, sandbox } = await prepareRepo("upload");
  // More than the buffers on the way can hold.
  writeFileSync(join(repo, "large"), randomBytes(12 << 20));
  const stalled = await stalledAt(/^PUT /, server.url);
  const run = user.start(["exec", "--", "true"], { cwd: repo, env: { BERTH_URL: stalled.url } });
  await stalled.reached;
  run.child.kill("SIGINT");
  const ended = await run.ended;
  // The run did not wait until the server gave up.
  expect(stalled.hasServerGivenUp()).toBe(false);
  expect(ended).toMatchObject({ code: 130, stdout: "" });
  await expectNoScript(sandbox);
});

/** A relay that forwards nothing after data that matches. */
async function stalledAt(
  pattern: RegExp,
  to: string,
): Promise<{ url: string; reached: Promise<void>; hasServerGivenUp: () => boolean }> {
  const { promise: reached, resolve } = Promise.withResolvers<void>();
  let serverGaveUp = false;
  const relay = createServer((clientSide) => {
    const serverSide = dial(Number(new URL(to).port), "127.0.0.1");
    serverSide.pipe(clientSide);
    let isStalled = false;
    clientSide.on("data", (chunk) => {
      isStalled ||= pattern.test(chunk.toString("latin1"));
      if (!isStalled) return void serverSide.write(chunk);
      clientSide.pause();
      serverSide.once("close", () => {
        serverGaveUp = true;
      });
      resolve();
    });
    clientSide.on("close", () => serverSide.destroy());
    for (const side of [clientSide, serverSide]) side.on("error", () => clientSide.destroy());
  }).listen(0, "127.0.0.1");
  await once(relay, "listening");
  onTestFinished(() => void relay.close());
  return {
    url: `http://127.0.0.1:${(relay.address() as AddressInfo).port}`,
    reached,
    hasServerGivenUp: () => serverGaveUp,
  };
}
