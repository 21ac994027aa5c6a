/** The life of a sandbox in a real container: what it sees, what is saved of it, how it is lost and found. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Server } from "../system/server.ts";
import { until } from "../system/until.ts";
import {
  boxesOf,
  boxOf,
  docker,
  endBerth,
  facts,
  type Home,
  newHome,
  startBerth,
} from "./berth.ts";
import { callsOf } from "./calls.ts";

/** A tree with what is easily lost when it is copied, and a command that tells it; Docker keeps times by the second. */
const makeTree = `mkdir -p tree/empty && cd tree && printf 'a\\0b' > bytes && ln bytes hard && ln -s bytes soft
  chmod 4750 bytes && touch -d '2001-02-03 04:05:06Z' bytes && mkfifo pipe && echo gone > dropped
  echo t > /tmp/left && echo w > /var/tmp/stays`;
const tellTree = `cd tree && stat -c '%n %F %a %u %h %s %Y' * && sha256sum bytes && readlink soft
  cat /var/tmp/stays && ls -A /tmp | wc -l`;

let home: Home;
let server: Server;
const { call, told, said, checkpoint, states } = callsOf(() => server);

const savedTrees = () =>
  docker.lines("images", "--format", "{{.Repository}}", "workerd-container-snap-*");
const lifeOf = async (id: string) => String((await told(id)).incarnation);
const containerOf = async (id: string) => boxOf(home, await lifeOf(id));

beforeAll(async () => {
  home = newHome();
  server = await startBerth(home);
});
afterAll(async () => {
  await endBerth(home, server);
});

describe("a sandbox in a real container", () => {
  it("[DK1] runs commands as berth in a workspace of their own, without privileges, below an agent that they cannot read", async () => {
    const id = await server.create({ env: { GREETING: "good day" } });
    const health = await server.call("GET", "/health");
    expect(health.body).toMatchObject({ engine: "platform", missing: [] });
    const seen = await said(id, "id -un; pwd; ls -A; cat /proc/1/comm; echo $GREETING");
    expect(seen).toBe("berth\n/workspace\nberth-agent\ngood day\n");
    const status = await said(id, "cat /proc/self/status");
    for (const set of ["Inh", "Prm", "Eff", "Amb"]) {
      expect(status).toMatch(new RegExp(`^Cap${set}:\\s+0{16}$`, "m"));
    }
    expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
    const tries = "cat /proc/1/environ; ls /proc/1/fd; kill -9 1; touch /usr/bin/x; echo tried";
    const { body } = await server.exec(id, tries);
    expect(body).toMatchObject({ exitCode: 0, stdout: "tried\n" });
    expect(String(body.stderr).match(/denied|not permitted/g)).toHaveLength(4);
    // What a command leaves behind ends with it, although the image has no init.
    const { body: left } = await server.exec(id, "(setsid sleep 600 &); sleep 0.2; echo left");
    expect(left).toMatchObject({ stdout: "left\n", leftovers: 1 });
    expect((await server.exec(id, "pgrep sleep")).body).toMatchObject({ exitCode: 1 });
  });

  it("[DK14] answers commands in a row, many at once, each with its own", async () => {
    const id = await server.create();
    let next = 0;
    const row = async () => {
      for (let at = next++; at < 400; at = next++) {
        expect(await said(id, `echo ${at}`)).toBe(`${at}\n`);
      }
    };
    await Promise.all(Array.from({ length: 8 }, row));
    const slow = Array.from({ length: 4 }, (_, n) => said(id, `sleep 2.5; echo late ${n}`));
    await Promise.all(Array.from({ length: 8 }, row));
    expect(await Promise.all(slow)).toEqual([0, 1, 2, 3].map((n) => `late ${n}\n`));
  });

  it("[DK4] is saved and restored to the byte, /tmp and /run aside, and goes on so after a pause", async () => {
    const id = await server.create();
    await said(id, makeTree);
    const whole = await said(id, tellTree);
    expect(whole).toContain(" 981173106\n");
    expect(whole).toMatch(/\n1\n$/);
    const saved = await checkpoint(id, "whole");
    await said(id, "rm -r tree/empty tree/dropped; echo more > tree/added");
    const before = await lifeOf(id);
    const restored = await call("POST", id, `/checkpoints/${saved}/restore`, {});
    expect(restored.body).toMatchObject({ state: "running", files: "snapshot" });
    expect(restored.body.incarnation).not.toBe(before);
    const tree = whole.replace(/\n1\n$/, "\n0\n");
    expect(await said(id, tellTree)).toBe(tree);
    await said(id, "echo kept > kept; echo t > /tmp/left");
    expect((await call("POST", id, "/pause", {})).body).toMatchObject({ state: "paused" });
    expect(boxesOf(home).filter(({ startId }) => before.startsWith(`${startId}.`))).toEqual([]);
    expect(await said(id, "cat kept; ls -A /tmp")).toBe("kept\n");
    expect(await said(id, tellTree)).toBe(tree);
    const fork = await server.create({ from: saved });
    expect(await said(fork, `ls kept 2>/dev/null; ${tellTree}`)).toBe(tree);
  });

  it("[DK5] that is lost tells whoever was calling, fails, and starts again from what was saved last", async () => {
    const id = await server.create();
    await said(id, "echo 1 > first");
    await checkpoint(id, "first");
    await said(id, "echo 2 > second");
    const before = await lifeOf(id);
    const running = server.exec(id, "echo begun > begun; sleep 600");
    await until("it runs", async () => (await said(id, "cat begun 2>/dev/null; true")) !== "");
    docker.say("kill", (await containerOf(id)).name);
    const cut = await running;
    expect(cut.body.error).toMatchObject({ code: "operation_interrupted" });
    await until("it is noticed", async () => (await told(id)).state === "failed");
    expect(await told(id)).toMatchObject({ reason: "container_lost", restartable: true });
    expect(await said(id, "ls")).toBe("first\n");
    expect(await told(id)).toMatchObject({ state: "running", files: "snapshot" });
    expect(await lifeOf(id)).not.toBe(before);
    expect(await states(id)).toEqual(["starting", "running", "failed", "starting", "running"]);
    // What a pause has saved is as good, and newer.
    await said(id, "echo 3 > third");
    expect((await call("POST", id, "/pause", {})).body).toMatchObject({ state: "paused" });
    await said(id, "echo 4 > fourth");
    docker.say("kill", (await containerOf(id)).name);
    await until("it runs", async () => (await server.exec(id, "true")).status === 200);
    expect(await said(id, "ls")).toBe("first\nthird\n");
  });

  it.runIf(facts.isOwn)(
    "[DK11] tells at once that the tree of a checkpoint is gone, and is restored from another",
    async () => {
      const id = await server.create();
      await said(id, "echo 1 > first");
      const first = await checkpoint(id, "first");
      const others = new Set(savedTrees());
      const second = await checkpoint(id, "second");
      const [gone = "", ...more] = savedTrees().filter((name) => !others.has(name));
      expect(more).toEqual([]);
      docker.say("rmi", gone);
      const missed = await call("POST", id, `/checkpoints/${second}/restore`, {});
      expect(missed.body).toMatchObject({
        error: { code: "start_failed", reason: "snapshot_missing", state: "failed" },
      });
      const restored = await call("POST", id, `/checkpoints/${first}/restore`, {});
      expect(restored.body).toMatchObject({ state: "running", files: "snapshot" });
      expect(await said(id, "ls")).toBe("first\n");
    },
  );

  it.runIf(facts.isOwn)(
    "[DK6] whose agent crashes is not continued by Docker's own restart: that ends by itself, and the next life is asked for",
    async () => {
      const id = await server.create();
      await said(id, "echo unsaved > unsaved");
      const before = await lifeOf(id);
      const { pid, startId } = await containerOf(id);
      process.kill(pid, "SIGKILL");
      const restarted = () => boxesOf(home).filter((box) => box.startId === startId);
      await until("Docker restarts it, and it ends", () =>
        restarted().some(
          ({ restarts, state, exitCode }) => restarts === 1 && state === "exited" && exitCode === 0,
        ),
      );
      await server.exec(id, "true");
      await until("it runs", async () => (await server.exec(id, "true")).status === 200);
      expect((await lifeOf(id)).split(".")[0]).not.toBe(before.split(".")[0]);
      expect(restarted()).toEqual([]);
      expect(await said(id, "ls")).toBe("");
      const second = await containerOf(id);
      process.kill(second.pid, "SIGKILL");
      await until("Docker restarts it, and it ends", () =>
        boxesOf(home).some(
          (box) => box.startId === second.startId && box.restarts === 1 && box.state === "exited",
        ),
      );
      expect((await call("DELETE", id)).body).toMatchObject({ state: "destroyed" });
      const left = boxesOf(home).filter((box) => box.startId === second.startId);
      expect(left.filter(({ state }) => state !== "exited")).toEqual([]);
    },
  );

  it("[DK7] that is destroyed has no container any more, and is gone for good", async () => {
    const id = await server.create();
    const { name } = await containerOf(id);
    const running = server.exec(id, "echo begun > begun; sleep 600");
    await until("it runs", async () => (await said(id, "cat begun 2>/dev/null; true")) !== "");
    expect((await call("DELETE", id)).body).toMatchObject({ state: "destroyed" });
    expect(boxesOf(home).filter((box) => box.name === name)).toEqual([]);
    expect((await running).body.error).toMatchObject({ code: "operation_interrupted" });
    expect((await server.exec(id, "true")).status).toBe(410);
    expect(boxesOf(home).filter((box) => box.name === name)).toEqual([]);
  });
});
