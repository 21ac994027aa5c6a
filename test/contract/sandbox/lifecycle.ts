/** The contract of a sandbox as a whole: create, states, pause, idleness, lifetime, destroy. */
import { describe, expect, it } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import {
  createSandbox,
  eventsOfType,
  eventually,
  expectRefusal,
  expectRefusals,
  itWith,
  refusal,
  type World,
} from "./world.ts";

export function lifecycleContract(world: World): void {
  const itByTheClock = itWith(world, "clock", "ring");
  const running = (id: string) =>
    eventually(async () => expect((await world.inside(id)).running).toBe(1));

  describe("the life of a sandbox", () => {
    it("[Y1] is what its create call said, and reports the defaults of the rest", async () => {
      const { box } = await createSandbox(world, {
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
      const plain = await (await createSandbox(world)).box.get();
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

    it("[S20] keeps its size in each incarnation, in lists and in its forks", async () => {
      const { id, box } = await createSandbox(world, { size: "small", metadata: { of: "size" } });
      expect(await box.get()).toMatchObject({ state: "running", size: "small" });
      await box.pause();
      expect(await box.start()).toMatchObject({ state: "running", size: "small" });
      const { sandboxes } = await world.berth.list({ metadata: ["of=size"] });
      expect(sandboxes.find((sandbox) => sandbox.id === id)).toMatchObject({ size: "small" });
      const { id: from } = await box.makeCheckpoint();
      const same = await createSandbox(world, { from, start: false });
      expect(await same.box.get()).toMatchObject({ size: "small" });
      const other = await createSandbox(world, { from, start: false, size: "large" });
      expect(await other.box.get()).toMatchObject({ size: "large" });
      expect((await (await createSandbox(world)).box.get()).size).toBeUndefined();
    });

    it("[S21] refuses an unknown size, naming it and the sizes that exist", async () => {
      const refused = world.berth.create({ size: "huge" });
      await expect(refused).rejects.toMatchObject({
        code: "bad_request",
        message: "size: none named huge is configured.",
        facts: { field: "size" },
      });
      const hint = await refused.catch(({ hint }) => hint);
      expect(hint).toBe("Configured are: small, large.");
    });

    it("[D31] is a different one for each scope, also where two merely look alike", async () => {
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

    it("[S15] can begin paused, without a container until a call needs one", async () => {
      const { id, box } = await createSandbox(world, { start: false });
      expect((await box.get()).state).toBe("paused");
      await box.patchMetadata({ a: "1" });
      await box.touch();
      await box.events();
      expect((await world.inside(id)).starts).toEqual([]);
      await expectRefusal(box.exec({ command: "true" }, { wake: false }), "not_running", {
        state: "paused",
      });
      expect((await world.inside(id)).starts).toEqual([]);
      expect(await box.exec({ command: "echo hi" })).toMatchObject({ stdout: "hi\n" });
      expect((await world.inside(id)).starts).toHaveLength(1);
    });

    it("[S15] is never woken by a call if its creator said so, only by a start", async () => {
      const { box } = await createSandbox(world, { start: false, wake: "never" });
      await expectRefusal(box.exec({ command: "true" }), "not_running");
      await expectRefusal(box.exec({ command: "true" }, { wake: true }), "not_running");
      expect((await box.start()).state).toBe("running");
      expect((await box.exec({ command: "true" })).exitCode).toBe(0);
    });

    it("[S36] ends a run at an end that can be moved, and each start sets a new one", async () => {
      const { id, box } = await createSandbox(world, { endAfterMs: 600_000, onEnd: "pause" });
      const endsAt = (view: { endsAt?: string | undefined }) => Date.parse(view.endsAt ?? "");
      const first = await box.get();
      expect(first).toMatchObject({ endAfterMs: 600_000, onEnd: "pause" });
      expect(endsAt(first) - Date.parse(first.stateSince)).toBe(600_000);
      const later = await box.setEnd({ afterMs: 3_000_000 });
      expect(endsAt(later)).toBeGreaterThan(endsAt(first));
      expect(endsAt(await box.setEnd({ afterMs: 1_000, onlyLater: true }))).toBe(endsAt(later));
      await box.startProcess({ argv: ["sleep", "60"] });
      await box.setEnd({ afterMs: 0 });
      if (world.can.has("ring")) await world.ring(id);
      await eventually(async () => expect((await box.get()).state).toBe("paused"));
      expect(await box.get()).toMatchObject({ reason: "ended" });
      expect(await box.get()).not.toHaveProperty("endsAt");
      expect((await refusal(box.setEnd({ afterMs: 1_000 }))).code).toBe("not_running");
      const restarted = await box.start();
      expect(endsAt(restarted) - Date.parse(restarted.stateSince)).toBe(600_000);
    });

    it("[S14] pauses and continues: another incarnation, the same files and metadata", async () => {
      const { box } = await createSandbox(world, { metadata: { owner: "ci" } });
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
      const { id, box } = await createSandbox(world, { start: false });
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
      expect(last.filter((result) => result?.state === "destroyed").length).toBeGreaterThanOrEqual(
        3,
      );
      expect(await box.get()).toMatchObject({ state: "destroyed", reason: "requested" });
      expect((await world.inside(id)).alive).toBe(false);
      const states = (await eventsOfType(box, "state")).map(({ state }) => state);
      expect(states.filter((state) => state === "destroyed")).toHaveLength(1);
    });

    it("[Y3] does not pause during a running command, unless forced or waiting", async () => {
      const { id, box } = await createSandbox(world);
      const cut = refusal(box.exec({ command: "sleep 60" }));
      await running(id);
      await expectRefusal(box.pause(), "lease_pending", { running: 1 });
      expect((await box.pause({ force: true })).state).toBe("paused");
      expect((await cut).code).toBe("operation_interrupted");

      const short = box.exec({ command: "sleep 0.3" });
      await running(id);
      const waited = box.pause({ waitMs: 10_000 });
      expect((await short).exitCode).toBe(0);
      expect((await waited).state).toBe("paused");
      expect((await box.lease()).state).toBe("free");
    });

    itWith(world, "clock", "ring").each([
      ["pause", "paused"],
      ["destroy", "destroyed"],
      ["none", "running"],
    ] as const)("[S16] when idle does what its creator chose: %s", async (onIdle, state) => {
      const { id, box } = await createSandbox(world, { onIdle, idleTimeoutMs: 60_000 });
      const { stateSince } = await box.get();
      world.clock(Date.parse(stateSince) + 59_000);
      await world.ring(id);
      expect((await box.get()).state).toBe("running");
      world.clock(Date.parse(stateSince) + 60_000);
      const rang = await world.ring(id);
      // The alarm of a report to the Directory may still fire, and on the platform those that keep the container.
      if (onIdle !== "none") expect(rang).toBe(true);
      else if (world.can.has("compare")) expect(await world.ring(id)).toBe(false);
      const after = await box.get();
      expect(after.state).toBe(state);
      if (onIdle !== "none") expect(after.reason).toBe("idle");
    });

    itByTheClock(
      "[S16] is not idle while it is leased, runs a command or was touched",
      async () => {
        const { id, box } = await createSandbox(world, { idleTimeoutMs: 60_000 });
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
      },
    );

    itByTheClock("[S17] ends with its maximum lifetime, whatever runs in it", async () => {
      const { id, box } = await createSandbox(world, { maxLifetimeMs: 120_000 });
      const createdAt = Date.parse((await box.get()).createdAt);
      const cut = refusal(box.exec({ command: "sleep 60" }));
      await running(id);
      world.clock(createdAt + 120_000);
      expect(await world.ring(id)).toBe(true);
      expect(await box.get()).toMatchObject({ state: "destroyed", reason: "expired" });
      expect((await cut).code).toBe("operation_interrupted");
      expect((await world.inside(id)).alive).toBe(false);
    });

    it("[S5] refuses everything but reads and destroy once it is destroyed", async () => {
      const { box } = await createSandbox(world, { metadata: { owner: "ci" } });
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
      await expectRefusals(calls, "sandbox_destroyed", { reason: "requested" });
      expect((await box.get()).state).toBe("destroyed");
      expect((await box.metadata()).metadata).toEqual({ owner: "ci" });
      expect((await box.lease()).state).toBe("free");
      expect((await eventsOfType(box, "state")).at(-1)?.state).toBe("destroyed");
      expect((await box.destroy()).state).toBe("destroyed");
    });

    it("[W3] is invisible to another tenant", async () => {
      const { id } = await createSandbox(world);
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
        const failure = await refusal(call(foreign));
        expect(failure.code).toBe("not_found");
        expect(await refusal(call(invented))).toEqual(failure);
      }
    });
  });
}
