/**
 * Proves what becomes of a run whose checkout is on its way, there or back, when the connection is cut or Ctrl-C comes.
 * Does not own cuts while the command runs (exec.test.ts).
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer, connect as dial } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { connect, type SandboxHandle } from "../../../src/client/index.ts";
import { CutProxy } from "../client/cut-proxy.ts";
import { type SharedServer, useSharedServer } from "../shared-server.ts";
import { until } from "../until.ts";
import { Person } from "./cli-user.ts";

let server: SharedServer;
let person: Person;
beforeAll(async () => {
  server = await useSharedServer();
  person = new Person(server);
});
afterAll(async () => {
  person[Symbol.dispose]();
  await server[Symbol.asyncDispose]();
});

/** Where git of the sandbox looks for names to ignore, and waits: a pipe that nobody writes to. */
const hold = "/tmp/hold";

async function held(name: string): Promise<{ repo: string; sandbox: SandboxHandle }> {
  const repo = person.repo(name);
  const config = ["exec", "--json", "--", "git", "config", "core.excludesFile", hold];
  const made = await person.json<{ sandbox: string }>(config, { cwd: repo });
  return { repo, sandbox: connect(server).sandbox(made.sandbox) };
}

async function nothingLeft(sandbox: SandboxHandle): Promise<void> {
  await until("the lease is free", async () => {
    const { state, waiterCount } = await sandbox.lease();
    return state === "free" && waiterCount === 0;
  });
  const { stdout } = await sandbox.exec({ command: "pgrep -f [b]erth-sync || echo none" });
  expect(stdout).toBe("none\n");
}

function isThere(sandbox: SandboxHandle, path: string): Promise<boolean> {
  return sandbox.stat(path).then(
    () => true,
    () => false,
  );
}

const traceOf = (file: string) => (existsSync(file) ? readFileSync(file, "utf8") : "");

test("[LV23] a connection that is cut while changes are fetched is made up for: they come, once", async () => {
  await using proxy = await CutProxy.to(server.url);
  const { repo, sandbox } = await held("cut");
  await sandbox.createTerminal({ id: "go", argv: ["sh", "-c", `read go; : > ${hold}`] });
  const trace = join(person.home, "cut-trace");
  const names = ".git/berth/leave.names";
  const command = `rm ${names}; mkfifo ${hold}; echo late > made; exit 3`;
  const env = { BERTH_URL: proxy.url, BERTH_TRACE: trace };
  const run = person.start(["exec", "--", "sh", "-c", command], { cwd: repo, env });
  await until("the command is over", () => traceOf(trace).includes('"pull"'));
  await until("its changes are looked for", () => isThere(sandbox, names));
  // Of one that it saw end the server would have ended the lease.
  proxy.cutSilently();
  expect(proxy.cuts).toBeGreaterThan(0);
  // It is connected again before the end of the script, which is one and the same.
  await until("it is back", () => proxy.open > 1);
  const live = await sandbox.attachTerminal("go");
  live.write(Buffer.from("\n"));
  expect(await run.ended).toMatchObject({ code: 3, stderr: "changed here: made\n" });
  expect(readFileSync(join(repo, "made"), "utf8")).toBe("late\n");
  live.close();
  await nothingLeft(sandbox);
});

test.each(["alone", "inside of berth lock"])(
  "[LV11] Ctrl-C while the checkout is brought ends it at once, and what runs there for it: %s",
  async (kind) => {
    const { repo, sandbox } = await held(`ctrl-c-${kind.length}`);
    const begun = ".git/berth/released";
    await sandbox.exec({ command: `mkfifo ${hold}; rm ${begun}` });
    await using lease = kind === "alone" ? undefined : await sandbox.hold({ holder: "outer" });
    const env: Record<string, string> =
      lease === undefined ? {} : { BERTH_LEASE: lease.token, BERTH_LEASE_SANDBOX: sandbox.id };
    const run = person.start(["exec", "--", "true"], { cwd: repo, env });
    await until("it runs there", () => isThere(sandbox, begun));
    run.child.kill("SIGINT");
    const killedAt = performance.now();
    expect(await run.ended).toMatchObject({ code: 130, stdout: "" });
    console.log(`${kind}: ended ${Math.round(performance.now() - killedAt)} ms after Ctrl-C`);
    if (lease !== undefined) {
      const look = { command: "pgrep -f [b]erth-sync || echo none" };
      expect((await sandbox.exec(look, { lease: lease.token })).stdout).toBe("none\n");
      await lease.release();
    }
    await nothingLeft(sandbox);
  },
);

test("[LV11] Ctrl-C while an upload makes no way ends it at once", async () => {
  const { repo, sandbox } = await held("upload");
  // More than the buffers on its way hold.
  writeFileSync(join(repo, "large"), randomBytes(12 << 20));
  const stalled = await stalledAt(/^PUT /, server.url);
  const run = person.start(["exec", "--", "true"], { cwd: repo, env: { BERTH_URL: stalled.url } });
  await stalled.reached;
  run.child.kill("SIGINT");
  const ended = await run.ended;
  // It did not wait until the server had enough of it.
  expect(stalled.isGivenUp()).toBe(false);
  expect(ended).toMatchObject({ code: 130, stdout: "" });
  await nothingLeft(sandbox);
});

/** A relay that passes on nothing more of what has begun so. */
async function stalledAt(
  pattern: RegExp,
  to: string,
): Promise<{ url: string; reached: Promise<void>; isGivenUp: () => boolean }> {
  const { promise: reached, resolve } = Promise.withResolvers<void>();
  let givenUp = false;
  const relay = createServer((near) => {
    const far = dial(Number(new URL(to).port), "127.0.0.1");
    far.pipe(near);
    let isStalled = false;
    near.on("data", (piece) => {
      isStalled ||= pattern.test(piece.toString("latin1"));
      if (!isStalled) return void far.write(piece);
      near.pause();
      far.once("close", () => {
        givenUp = true;
      });
      resolve();
    });
    near.on("close", () => far.destroy());
    for (const one of [near, far]) one.on("error", () => near.destroy());
  }).listen(0, "127.0.0.1");
  await once(relay, "listening");
  onTestFinished(() => void relay.close());
  return {
    url: `http://127.0.0.1:${(relay.address() as AddressInfo).port}`,
    reached,
    isGivenUp: () => givenUp,
  };
}
