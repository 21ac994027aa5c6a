/**
 * Owns what callers are promised of a sandbox as a whole: create, states, pause, idle, lifetime, destroy.
 */
import { describe, expect, it } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { made, refusal, refusals, saying, soon, told, type World } from "./world.ts";

export function lifecycleContract(world: World): void {
  const running = (id: string) =>
    soon(async () => expect((await world.inside(id)).running).toBe(1));

  describe("the life of a sandbox", () => {
    it("[Y1] is what create was told, and says what it was not told", async () => {
      const { box } = await made(world, {
        cwd: "sub",
        network: { internet: false },
        metadata: { owner: "ci", gone: null, empty: "" },
        wake: "never",
        idleTimeoutMs: 5_000,
        onIdle: "destroy",
        maxLifetimeMs: 3_600_000,
      });
      expect(await box.get()).toMatchObject({
        state: "running",
        cwd: "sub",
        network: { internet: false },
        metadata: { owner: "ci" },
        metadataVersion: 1,
        wake: "never",
        idleTimeoutMs: 5_000,
        onIdle: "destroy",
        maxLifetimeMs: 3_600_000,
      });
      const plain = await (await made(world)).box.get();
      expect(plain).toMatchObject({
        metadata: {},
        metadataVersion: 0,
        wake: "auto",
        idleTimeoutMs: limits.idleTimeoutMs,
        onIdle: "pause",
        network: { internet: true },
      });
      expect(plain.lease).toBeUndefined();
      expect(plain.maxLifetimeMs).toBeUndefined();
    });

    it("[S20] has the size that it was made with: in each life, in lists, and in its forks", async () => {
      const { id, box } = await made(world, { size: "small", metadata: { of: "size" } });
      expect(await box.get()).toMatchObject({ state: "running", size: "small" });
      await box.pause();
      expect(await box.start()).toMatchObject({ state: "running", size: "small" });
      const { sandboxes } = await world.berth.list({ metadata: ["of=size"] });
      expect(sandboxes.find((one) => one.id === id)).toMatchObject({ size: "small" });
      const { id: from } = await box.makeCheckpoint();
      const same = await made(world, { from, start: false });
      expect(await same.box.get()).toMatchObject({ size: "small" });
      const other = await made(world, { from, start: false, size: "large" });
      expect(await other.box.get()).toMatchObject({ size: "large" });
      expect((await (await made(world)).box.get()).size).toBeUndefined();
    });

    it("[S21] is refused a size that is not configured, by its name and the names that there are", async () => {
      const refused = world.berth.create({ size: "huge" });
      await expect(refused).rejects.toMatchObject({
        code: "bad_request",
        message: "size: none named huge is configured.",
        facts: { field: "size" },
      });
      const hint = await refused.catch(({ hint }) => hint);
      expect(hint).toBe("Configured are: small, large.");
    });

    it("[D31] is another one for each scope, also where two only read alike", async () => {
      const scopes = [
        { repo: "d31/a:b", branch: "c", config: "" },
        { repo: "d31/a", branch: "b:c", config: "" },
        { repo: "d31/a", branch: "b", config: "c" },
        { repo: "d31/a", branch: "b", config: ":c" },
        { repo: "d31/caf\u00e9", branch: "main", config: "" },
        { repo: "d31/cafe\u0301", branch: "main", config: "" },
        { repo: "d31/CAF\u00c9", branch: "main", config: "" },
      ];
      const make = () =>
        Promise.all(scopes.map((scope) => world.berth.create({ scope, start: false })));
      const first = await make();
      expect(new Set(first.map(({ id }) => id)).size).toBe(scopes.length);
      expect(first.map(({ scope }) => scope)).toEqual(scopes);
      expect((await make()).map(({ id }) => id)).toEqual(first.map(({ id }) => id));
      const [, , , , composed] = scopes;
      const { sandboxes } = await world.berth.list({ "scope.repo": composed?.repo });
      expect(sandboxes.map(({ id }) => id)).toEqual([first[4]?.id]);
    });

    it("[S15] begins paused, without a container until a call needs one", async () => {
      const { id, box } = await made(world, { start: false });
      expect((await box.get()).state).toBe("paused");
      await box.patchMetadata({ a: "1" });
      await box.touch();
      await box.events();
      expect((await world.inside(id)).starts).toEqual([]);
      expect(await refusal(box.exec({ command: "true" }, { wake: false }))).toMatchObject({
        code: "not_running",
        facts: { state: "paused" },
      });
      expect((await world.inside(id)).starts).toEqual([]);
      expect(await box.exec({ command: "echo hi" })).toMatchObject({ stdout: "hi\n" });
      expect((await world.inside(id)).starts).toHaveLength(1);
    });

    it("[S15] is woken by no call where its maker said so, but by a start", async () => {
      const { box } = await made(world, { start: false, wake: "never" });
      expect((await refusal(box.exec({ command: "true" }))).code).toBe("not_running");
      expect((await refusal(box.exec({ command: "true" }, { wake: true }))).code).toBe(
        "not_running",
      );
      expect((await box.start()).state).toBe("running");
      expect((await box.exec({ command: "true" })).exitCode).toBe(0);
    });

    it("[S14] pauses and goes on: another life, the same files and metadata", async () => {
      const { box } = await made(world, { metadata: { owner: "ci" } });
      const first = await box.get();
      expect(await box.pause()).toMatchObject({ state: "paused", reason: "requested" });
      expect(await box.pause()).toMatchObject({ state: "paused" });
      const second = await box.start();
      expect(second).toMatchObject({ state: "running", metadata: { owner: "ci" } });
      // Where files do not outlive their container, the pause has saved them.
      expect(["kept", "snapshot"]).toContain(second.files);
      expect(second.incarnation).not.toBe(first.incarnation);
    });

    it("[Y2] lets calls with the same aim join, and a destroy win over all of them", async () => {
      const { id, box } = await made(world, { start: false });
      const started = await Promise.all(Array.from({ length: 10 }, () => box.start()));
      expect(new Set(started.map(({ incarnation }) => incarnation)).size).toBe(1);
      expect((await world.inside(id)).starts).toHaveLength(1);
      const paused = await Promise.all(Array.from({ length: 10 }, () => box.pause()));
      expect(paused.map(({ state }) => state)).toEqual(Array(10).fill("paused"));
      const last = await Promise.all([
        box.destroy(),
        box.destroy(),
        box.start().catch(() => undefined),
        box.pause().catch(() => undefined),
        box.destroy(),
      ]);
      expect(last.filter((one) => one?.state === "destroyed").length).toBeGreaterThanOrEqual(3);
      expect(await box.get()).toMatchObject({ state: "destroyed", reason: "requested" });
      expect((await world.inside(id)).alive).toBe(false);
      const states = (await told(box, "state")).map(({ state }) => state);
      expect(states.filter((state) => state === "destroyed")).toHaveLength(1);
    });

    it("[Y3] pauses under no running command, unless it is forced or waits", async () => {
      const { id, box } = await made(world);
      const cut = refusal(box.exec({ command: "sleep 60" }));
      await running(id);
      expect(await refusal(box.pause())).toMatchObject({
        code: "lease_pending",
        facts: { running: 1 },
      });
      expect((await box.pause({ force: true })).state).toBe("paused");
      expect((await cut).code).toBe("operation_interrupted");

      const short = box.exec({ command: "sleep 0.3" });
      await running(id);
      const waited = box.pause({ waitMs: 10_000 });
      expect((await short).exitCode).toBe(0);
      expect((await waited).state).toBe("paused");
      expect((await box.lease()).state).toBe("free");
    });

    saying(world, "clock", "ring").each([
      ["pause", "paused"],
      ["destroy", "destroyed"],
      ["none", "running"],
    ] as const)("[S16] when idle does what its maker said: %s", async (onIdle, state) => {
      const { id, box } = await made(world, { onIdle, idleTimeoutMs: 60_000 });
      const { stateSince } = await box.get();
      world.clock(Date.parse(stateSince) + 59_000);
      await world.ring(id);
      expect((await box.get()).state).toBe("running");
      world.clock(Date.parse(stateSince) + 60_000);
      const rang = await world.ring(id);
      // One that was set for a report to the Directory may come; after it there is none.
      if (onIdle === "none") expect(await world.ring(id)).toBe(false);
      else expect(rang).toBe(true);
      const after = await box.get();
      expect(after.state).toBe(state);
      if (onIdle !== "none") expect(after.reason).toBe("idle");
    });

    saying(
      world,
      "clock",
      "ring",
    )("[S16] is not idle while it is leased, runs a command or was touched", async () => {
      const { id, box } = await made(world, { idleTimeoutMs: 60_000 });
      const since = Date.parse((await box.get()).stateSince);
      world.clock(since + 50_000);
      await box.touch();
      world.clock(since + 61_000);
      await world.ring(id);
      expect((await box.get()).state).toBe("running");

      const lease = await box.acquireLease({ ttlMs: 300_000 });
      world.clock(since + 130_000);
      await world.ring(id);
      expect((await box.get()).state).toBe("running");
      if ("token" in lease) await box.releaseLease(lease.token);

      const slept = box.exec({ command: "sleep 0.5" });
      await running(id);
      world.clock(since + 300_000);
      await world.ring(id);
      expect((await box.get()).state).toBe("running");
      expect((await slept).exitCode).toBe(0);
      world.clock(since + 400_000);
      await world.ring(id);
      expect((await box.get()).state).toBe("paused");
    });

    saying(
      world,
      "clock",
      "ring",
    )("[S17] ends with its lifetime, whatever runs in it", async () => {
      const { id, box } = await made(world, { maxLifetimeMs: 120_000 });
      const createdAt = Date.parse((await box.get()).createdAt);
      const cut = refusal(box.exec({ command: "sleep 60" }));
      await running(id);
      world.clock(createdAt + 120_000);
      expect(await world.ring(id)).toBe(true);
      expect(await box.get()).toMatchObject({ state: "destroyed", reason: "expired" });
      expect((await cut).code).toBe("operation_interrupted");
      expect((await world.inside(id)).alive).toBe(false);
    });

    it("[S5] refuses everything of a destroyed sandbox but looking at it and destroying it", async () => {
      const { box } = await made(world, { metadata: { owner: "ci" } });
      await box.destroy();
      const calls = [
        box.start(),
        box.pause(),
        box.touch(),
        box.exec({ command: "true" }),
        box.acquireLease(),
        box.renewLease("nothing"),
        box.releaseLease("nothing"),
        box.breakLease("why"),
        box.patchMetadata({ a: "1" }),
        box.replaceMetadata({}, { ifMatch: 1 }),
        box.createToken({ rights: ["read"] }),
        box.createTicket(),
      ];
      for (const refused of await refusals(calls)) {
        expect(refused).toMatchObject({
          code: "sandbox_destroyed",
          facts: { reason: "requested" },
        });
      }
      expect((await box.get()).state).toBe("destroyed");
      expect((await box.metadata()).metadata).toEqual({ owner: "ci" });
      expect((await box.lease()).state).toBe("free");
      expect((await told(box, "state")).at(-1)?.state).toBe("destroyed");
      expect((await box.destroy()).state).toBe("destroyed");
    });

    it("[W3] shows nothing of a sandbox to another tenant", async () => {
      const { id } = await made(world);
      const foreign = world.other.sandbox(id);
      const invented = world.other.sandbox(`${id.startsWith("a") ? "b" : "a"}${id.slice(1)}`);
      const calls = [
        (box: typeof foreign) => box.get(),
        (box: typeof foreign) => box.lease(),
        (box: typeof foreign) => box.acquireLease(),
        (box: typeof foreign) => box.patchMetadata({ a: "1" }),
        (box: typeof foreign) => box.events(),
        (box: typeof foreign) => box.destroy({ force: true }),
        (box: typeof foreign) => box.createToken({ rights: ["read"] }),
        (box: typeof foreign) => box.revokeTokens(),
      ];
      for (const call of calls) {
        const one = await refusal(call(foreign));
        expect(one.code).toBe("not_found");
        expect(await refusal(call(invented))).toEqual(one);
      }
    });
  });
}
