/** The lifecycle of a sandbox in a real container: isolation, snapshots, loss and recovery. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Server } from "../system/server.ts";
import { until } from "../until.ts";
import {
  type BerthHome,
  callsOf,
  containerRunning,
  containersOf,
  docker,
  endBerth,
  facts,
  newHome,
  startBerth,
} from "./berth.ts";

/** A tree with details that a copy easily loses, and a command that describes it. Docker keeps times by the second. */
const makeTree = `mkdir -p tree/empty && cd tree && printf 'a\\0b' > bytes && ln bytes hard && ln -s bytes soft
  chmod 4750 bytes && touch -d '2001-02-03 04:05:06Z' bytes && mkfifo pipe && echo gone > dropped
  echo t > /tmp/left && echo w > /var/tmp/stays`;
const describeTree = `cd tree && stat -c '%n %F %a %u %h %s %Y' * && sha256sum bytes && readlink soft
  cat /var/tmp/stays && ls -A /tmp | wc -l`;

let home: BerthHome;
let server: Server;
const { call, viewOf, outputOf, checkpoint, states } = callsOf(() => server);

const savedTrees = () =>
  docker.lines("images", "--format", "{{.Repository}}", "workerd-container-snap-*");
const incarnationOf = async (id: string) => String((await viewOf(id)).incarnation);
const containerOf = async (id: string) => containerRunning(home, await incarnationOf(id));

const untilRestartEnds = (startId: string | undefined) =>
  until("Docker restarts it, and it ends", () => {
    const restarted = containersOf(home).filter((container) => container.startId === startId);
    const exits = restarted.filter(({ restarts, state }) => restarts === 1 && state === "exited");
    return exits.some(({ exitCode }) => exitCode === 0);
  });

beforeAll(async () => {
  home = newHome();
  server = await startBerth(home);
});
afterAll(async () => {
  await endBerth(home, server);
});

describe("a sandbox in a real container", () => {
  it("[DK1] runs commands as berth in its own workspace, without privileges, under an agent that they cannot read", async () => {
    const id = await server.create({ env: { GREETING: "good day" } });
    const health = await server.call("GET", "/health");
    expect(health.body).toMatchObject({ engine: "platform", missing: [] });
    const seen = await outputOf(id, "id -un; pwd; ls -A; cat /proc/1/comm; echo $GREETING");
    expect(seen).toBe("berth\n/workspace\nberth-agent\ngood day\n");
    const status = await outputOf(id, "cat /proc/self/status");
    for (const set of ["Inh", "Prm", "Eff", "Amb"]) {
      expect(status).toMatch(new RegExp(`^Cap${set}:\\s+0{16}$`, "m"));
    }
    expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
    const tries = "cat /proc/1/environ; ls /proc/1/fd; kill -9 1; touch /usr/bin/x; echo tried";
    const { body } = await server.exec(id, tries);
    expect(body).toMatchObject({ exitCode: 0, stdout: "tried\n" });
    expect(String(body.stderr).match(/denied|not permitted/g)).toHaveLength(4);
    // Background processes end with their command, although the image has no init.
    const { body: left } = await server.exec(id, "(setsid sleep 600 &); sleep 0.2; echo left");
    expect(left).toMatchObject({ stdout: "left\n", leftovers: 1 });
    expect((await server.exec(id, "pgrep sleep")).body).toMatchObject({ exitCode: 1 });
  });

  it("[DK14] runs many concurrent streams of commands, each with its own output", async () => {
    const id = await server.create();
    let next = 0;
    const runStream = async () => {
      for (let index = next++; index < 400; index = next++) {
        expect(await outputOf(id, `echo ${index}`)).toBe(`${index}\n`);
      }
    };
    await Promise.all(Array.from({ length: 8 }, runStream));
    const slow = Array.from({ length: 4 }, (_, n) => outputOf(id, `sleep 2.5; echo late ${n}`));
    await Promise.all(Array.from({ length: 8 }, runStream));
    expect(await Promise.all(slow)).toEqual([0, 1, 2, 3].map((n) => `late ${n}\n`));
  });

  it("[DK4] is saved and restored byte for byte, except /tmp and /run, and also after a pause", async () => {
    const id = await server.create();
    await outputOf(id, makeTree);
    const savedTree = await outputOf(id, describeTree);
    expect(savedTree).toContain(" 981173106\n");
    expect(savedTree).toMatch(/\n1\n$/);
    const saved = await checkpoint(id, "whole");
    await outputOf(id, "rm -r tree/empty tree/dropped; echo more > tree/added");
    const before = await incarnationOf(id);
    const restored = await call("POST", id, `/checkpoints/${saved}/restore`, {});
    expect(restored.body).toMatchObject({ state: "running", files: "snapshot" });
    expect(restored.body.incarnation).not.toBe(before);
    const tree = savedTree.replace(/\n1\n$/, "\n0\n");
    expect(await outputOf(id, describeTree)).toBe(tree);
    await outputOf(id, "echo kept > kept; echo t > /tmp/left");
    expect((await call("POST", id, "/pause", {})).body).toMatchObject({ state: "paused" });
    expect(containersOf(home).filter(({ startId }) => before.startsWith(`${startId}.`))).toEqual(
      [],
    );
    expect(await outputOf(id, "cat kept; ls -A /tmp")).toBe("kept\n");
    expect(await outputOf(id, describeTree)).toBe(tree);
    const fork = await server.create({ from: saved });
    expect(await outputOf(fork, `ls kept 2>/dev/null; ${describeTree}`)).toBe(tree);
  });

  it("[DK5] that is lost interrupts its callers, fails, and restarts from the latest saved tree", async () => {
    const id = await server.create();
    await outputOf(id, "echo 1 > first");
    await checkpoint(id, "first");
    await outputOf(id, "echo 2 > second");
    const before = await incarnationOf(id);
    const running = server.exec(id, "echo begun > begun; sleep 600");
    await until("it runs", async () => (await outputOf(id, "cat begun 2>/dev/null; true")) !== "");
    docker.run("kill", (await containerOf(id)).name);
    const cut = await running;
    expect(cut.body.error).toMatchObject({ code: "operation_interrupted" });
    await until("it is noticed", async () => (await viewOf(id)).state === "failed");
    expect(await viewOf(id)).toMatchObject({ reason: "container_lost", restartable: true });
    expect(await outputOf(id, "ls")).toBe("first\n");
    expect(await viewOf(id)).toMatchObject({ state: "running", files: "snapshot" });
    expect(await incarnationOf(id)).not.toBe(before);
    expect(await states(id)).toEqual(["starting", "running", "failed", "starting", "running"]);
    // The tree that a pause has saved is newer.
    await outputOf(id, "echo 3 > third");
    expect((await call("POST", id, "/pause", {})).body).toMatchObject({ state: "paused" });
    await outputOf(id, "echo 4 > fourth");
    docker.run("kill", (await containerOf(id)).name);
    await until("it runs", async () => (await server.exec(id, "true")).status === 200);
    expect(await outputOf(id, "ls")).toBe("first\nthird\n");
  });

  it.runIf(facts.isOwn)(
    "[DK11] reports at once that the tree of a checkpoint is missing, and is restored from another",
    async () => {
      const id = await server.create();
      await outputOf(id, "echo 1 > first");
      const first = await checkpoint(id, "first");
      const others = new Set(savedTrees());
      const second = await checkpoint(id, "second");
      const [removed = "", ...more] = savedTrees().filter((name) => !others.has(name));
      expect(more).toEqual([]);
      docker.run("rmi", removed);
      const missed = await call("POST", id, `/checkpoints/${second}/restore`, {});
      expect(missed.body).toMatchObject({
        error: { code: "start_failed", reason: "snapshot_missing", state: "failed" },
      });
      const restored = await call("POST", id, `/checkpoints/${first}/restore`, {});
      expect(restored.body).toMatchObject({ state: "running", files: "snapshot" });
      expect(await outputOf(id, "ls")).toBe("first\n");
    },
  );

  it.runIf(facts.isOwn)(
    "[DK6] whose agent crashes ignores Docker's own restart, which ends by itself, and gets a new incarnation on request",
    async () => {
      const id = await server.create();
      await outputOf(id, "echo unsaved > unsaved");
      const before = await incarnationOf(id);
      const { pid, startId } = await containerOf(id);
      process.kill(pid, "SIGKILL");
      await untilRestartEnds(startId);
      await server.exec(id, "true");
      await until("it runs", async () => (await server.exec(id, "true")).status === 200);
      expect((await incarnationOf(id)).split(".")[0]).not.toBe(before.split(".")[0]);
      expect(containersOf(home).filter((container) => container.startId === startId)).toEqual([]);
      expect(await outputOf(id, "ls")).toBe("");
      const second = await containerOf(id);
      process.kill(second.pid, "SIGKILL");
      await untilRestartEnds(second.startId);
      expect((await call("DELETE", id)).body).toMatchObject({ state: "destroyed" });
      const left = containersOf(home).filter((container) => container.startId === second.startId);
      expect(left.filter(({ state }) => state !== "exited")).toEqual([]);
    },
  );

  it("[DK7] that is destroyed has no container and stays destroyed", async () => {
    const id = await server.create();
    const { name } = await containerOf(id);
    const running = server.exec(id, "echo begun > begun; sleep 600");
    await until("it runs", async () => (await outputOf(id, "cat begun 2>/dev/null; true")) !== "");
    expect((await call("DELETE", id)).body).toMatchObject({ state: "destroyed" });
    expect(containersOf(home).filter((container) => container.name === name)).toEqual([]);
    expect((await running).body.error).toMatchObject({ code: "operation_interrupted" });
    expect((await server.exec(id, "true")).status).toBe(410);
    expect(containersOf(home).filter((container) => container.name === name)).toEqual([]);
  });
});
