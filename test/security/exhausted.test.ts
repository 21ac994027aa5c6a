/** Sandboxes that use up a resource: calls get an error that says so, and no other sandbox has less of it. */
import { beforeEach, describe, expect, it } from "vitest";
import { identities } from "../engine/test-engine.ts";
import { until } from "../until.ts";
import { Attacked, post } from "./attacked-server.ts";

const MiB = 1024 * 1024;

describe.each(identities())("what a sandbox takes all of, Berth being %s", (as) => {
  const berth = Attacked.shared(
    { BERTH_ENGINE_PROCESSES_MAX: "100", BERTH_ENGINE_MEMORY_MAX: String(256 * MiB) },
    as,
  );
  let id: string;
  let incarnation: unknown;
  const pathOf = (path: string) => `/v1/sandboxes/${id}${path}`;

  beforeEach(async () => {
    id = await berth.create();
    ({ incarnation } = await berth.ok("GET", pathOf("")));
  });

  /** A process of the sandbox that says `full` when it is, and stays so until it is ended. */
  const whileFull = async (script: string, work: () => Promise<void>) => {
    const argv = ["python3", "-c", script];
    const { id: process } = await berth.ok("POST", pathOf("/processes"), { argv });
    await berth.ok("GET", pathOf(`/processes/${process}/wait?for=log:full&timeoutMs=30000`));
    await work();
    await berth.ok("DELETE", pathOf(`/processes/${process}`));
    expect(await berth.ok("GET", pathOf(""))).toMatchObject({ state: "running", incarnation });
  };

  it("[SC16] in a full sandbox whatever would begin is refused as `unavailable`, and works once there is room", async () => {
    await berth.exec(id, { command: "git init -q repo" });
    const begins: Record<string, [path: string, call: Record<string, unknown>]> = {
      "a command": ["/exec", { command: "true" }],
      "a program": ["/exec", { argv: ["true"] }],
      "a process": ["/processes", { command: "true" }],
      "a session": ["/sessions", { id: "one" }],
      "a terminal": ["/terminals", { id: "one", cols: 80, rows: 24 }],
      "a clone": ["/git/clone", { url: "file:///workspace/repo", dir: "copy" }],
    };
    const all = async () => {
      const outcomes: Record<string, unknown> = {};
      for (const [name, [path, call]] of Object.entries(begins)) {
        const answer = await berth.send(post(pathOf(path), call));
        outcomes[name] = answer.body.error?.code ?? answer.body.exitCode ?? answer.status;
      }
      return outcomes;
    };
    const full = `
import os, time
try:
    while True:
        if os.fork() == 0: time.sleep(600); os._exit(0)
except OSError: print("full", flush=True)
time.sleep(600)
`;
    await whileFull(full, async () => {
      const refused = Object.keys(begins).map((name) => [name, "unavailable"]);
      expect(await all()).toEqual(Object.fromEntries(refused));
    });
    // Its dead are collected a moment after it has ended.
    const fork = { command: "sleep 0.1 & ls | wc -l" };
    await until("there is room", async () => {
      const result = await berth.exec(id, fork).catch(() => undefined);
      return result?.exitCode === 0;
    });
    expect(await all()).toEqual({
      ...{ "a command": 0, "a program": 0, "a process": 201 },
      ...{ "a session": 201, "a terminal": 201, "a clone": 200 },
    });
  });

  it("[SC17] where memory ends, what commands have started is ended before their agent, however small", async () => {
    const readScore = "cat /proc/self/oom_score_adj";
    const settled = `sleep 1; cat /proc/1/oom_score_adj; ${readScore}; ${readScore}`;
    // The agent's is whatever Berth's own is.
    expect((await berth.exec(id, { command: settled })).stdout).toMatch(
      /^-?\d{1,3}\n1000\n1000\n$/,
    );
    if (as !== "root") return;
    // What is born in the very first moment too.
    const command = `${readScore} & ${readScore} & ${readScore} & wait`;
    const { stdout } = await berth.exec(id, { command });
    const ranks = stdout.split("\n").filter(Boolean).map(Number);
    expect(ranks).toHaveLength(3);
    expect(Math.min(...ranks)).toBeGreaterThanOrEqual(750);
    // Each smaller than the agent, and all of them larger than the sandbox.
    const many = `
import os, time
for n in range(80):
    if os.fork() == 0:
        kept = bytearray(b"x") * (6 << 20)
        time.sleep(600); os._exit(0)
print("full", flush=True)
time.sleep(600)
`;
    await whileFull(many, async () => {
      for (let n = 0; n < 5; n += 1) {
        await berth.send(post(pathOf("/exec"), { command: "seq 10000" }));
      }
    });
    expect((await berth.exec(id, { command: "echo here" })).stdout).toBe("here\n");
  });

  it.runIf(as === "root")(
    "[SC17] a folder in memory is full before the memory is: writes there fail, and nothing ends",
    async () => {
      const fill = ["/tmp", "/dev/shm"].map(
        (folder) => `head -c 2000000000 /dev/zero > ${folder}/full`,
      );
      const { stderr } = await berth.exec(id, { command: fill.join("; ") });
      expect(stderr.match(/No space left on device/g)).toHaveLength(2);
      expect(await berth.exec(id, { command: "echo here" })).toMatchObject({
        stdout: "here\n",
        incarnation,
      });
      await berth.exec(id, { command: "rm /tmp/full /dev/shm/full" });
    },
  );

  it("[SC25] a sandbox that opens every terminal it can get is refused, and leaves its neighbours theirs", async () => {
    const neighbour = await berth.create();
    const full = `
import os, time
held = []
try:
    while len(held) < 1000: held.append(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))
except OSError: pass
print(len(held), "full", flush=True)
time.sleep(600)
`;
    const call = { id: "two", cols: 80, rows: 24 };
    await whileFull(full, async () => {
      const refused = await berth.send(post(pathOf("/terminals"), call));
      expect(refused.body.error?.code).toBe("unavailable");
      await berth.ok("POST", `/v1/sandboxes/${neighbour}/terminals`, call);
    });
    await berth.ok("POST", pathOf("/terminals"), call);
  });
});
