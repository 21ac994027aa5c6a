/** Sandboxes that take all there is of something: who asks meanwhile is told so, and nobody else has less of it. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { identities } from "../engine/test-engine.ts";
import { Attacked } from "./attacked.ts";

describe.each(identities())("what a sandbox takes all of, Berth being %s", (as) => {
  let berth: Attacked;
  let id: string;
  let incarnation: unknown;
  const at = (path: string) => `/v1/sandboxes/${id}${path}`;

  beforeAll(async () => {
    const env = {
      BERTH_ENGINE_PROCESSES_MAX: "100",
    };
    berth = await Attacked.start(env, as);
  });

  beforeEach(async () => {
    id = await berth.create();
    ({ incarnation } = await berth.ok("GET", at("")));
  });

  afterAll(async () => {
    expect(await berth.end()).toEqual([]);
  });

  /** A process of the sandbox that says `full` when it is, and stays so until it is ended. */
  const whileFull = async (script: string, work: () => Promise<void>) => {
    const argv = ["python3", "-c", script];
    const { id: process } = await berth.ok("POST", at("/processes"), { argv });
    await berth.ok("GET", at(`/processes/${process}/wait?for=log:full&timeoutMs=30000`));
    await work();
    await berth.ok("DELETE", at(`/processes/${process}`));
    expect(await berth.ok("GET", at(""))).toMatchObject({ state: "running", incarnation });
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
      const told: Record<string, unknown> = {};
      for (const [name, [path, call]] of Object.entries(begins)) {
        const body = JSON.stringify(call);
        const answer = await berth.send({ method: "POST", path: at(path), body });
        told[name] = answer.body.error?.code ?? answer.body.exitCode ?? answer.status;
      }
      return told;
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
    expect(await all()).toEqual({
      ...{ "a command": 0, "a program": 0, "a process": 201 },
      ...{ "a session": 201, "a terminal": 201, "a clone": 200 },
    });
  });

  it("[SC25] a sandbox that opens every terminal it can get is told so, and leaves its neighbours theirs", async () => {
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
      const body = JSON.stringify(call);
      const refused = await berth.send({ method: "POST", path: at("/terminals"), body });
      expect(refused.body.error?.code).toBe("unavailable");
      await berth.ok("POST", `/v1/sandboxes/${neighbour}/terminals`, call);
    });
    await berth.ok("POST", at("/terminals"), call);
  });
});
