/** The contract of settings: one step, versions, the environment of a running sandbox, and many alike in one create. */
import { describe, expect, it } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { createSandbox, eventsOfType, eventually, expectRefusal, type World } from "./world.ts";

export function settingsContract(world: World): void {
  describe("settings", () => {
    it("[ST1] change in one step with a version, and an event names the fields", async () => {
      const { box } = await createSandbox(world, { start: false, maxLifetimeMs: 3_600_000 });
      expect(await box.settings()).toMatchObject({ version: 0, maxLifetimeMs: 3_600_000 });
      const change = { idleTimeoutMs: 5_000, onIdle: "none", maxLifetimeMs: null } as const;
      expect(await box.patchSettings({ ...change, keepCheckpoints: 2 })).toMatchObject({
        ...{ version: 1, idleTimeoutMs: 5_000, onIdle: "none", wake: "auto" },
        ...{ maxLifetimeMs: null, keepCheckpoints: 2, destroyPausedAfterMs: null },
      });
      expect((await box.patchSettings(change)).version).toBe(1);
      await expectRefusal(box.patchSettings({ ifVersion: 0, wake: "never" }), "version_mismatch", {
        version: 1,
      });
      expect((await box.patchSettings({ ifVersion: 1, wake: "never" })).version).toBe(2);
      const view = await box.get();
      expect(view).toMatchObject({ wake: "never", idleTimeoutMs: 5_000, settingsVersion: 2 });
      expect(view.maxLifetimeMs).toBeUndefined();
      expect(await eventsOfType(box, "settings")).toEqual([
        {
          ...{ type: "settings", version: 1 },
          changed: ["idleTimeoutMs", "onIdle", "maxLifetimeMs", "keepCheckpoints"],
        },
        { type: "settings", version: 2, changed: ["wake"] },
      ]);
    });

    it("[ST2] of the environment reach a running sandbox, and show no value", async () => {
      const { box } = await createSandbox(world, { env: { A: "1", B: "2" } });
      await box.exec({ command: "true" });
      const changed = await box.patchSettings({ env: { A: null, C: "secret-value" } });
      expect(changed).toMatchObject({ version: 1, envNames: ["B", "C"] });
      expect(changed.atNextStart).toBeUndefined();
      expect(JSON.stringify([changed, await box.get()])).not.toContain("secret-value");
    });

    it("[ST2] of the network say that they wait for the next start", async () => {
      const { box } = await createSandbox(world);
      const change = { network: { internet: false } };
      expect(await box.patchSettings(change)).toMatchObject({
        atNextStart: ["network"],
        ...change,
      });
      await box.pause();
      expect(
        (await box.patchSettings({ network: { internet: true } })).atNextStart,
      ).toBeUndefined();
      expect((await box.start()).network).toEqual({ internet: true });
    });

    it("[ST3] are refused by name, and nothing of the call applies", async () => {
      const { box } = await createSandbox(world, { start: false, env: { KEPT: "1" } });
      const many = Object.fromEntries(
        Array.from({ length: limits.envCountMax }, (_, n) => [`V${n}`, "v"]),
      );
      const wrong = [
        [{ idleTimeoutMs: 1 }, "idleTimeoutMs"],
        [{ keepCheckpoints: 0 }, "keepCheckpoints"],
        [{ checkpointEveryMs: 1 }, "checkpointEveryMs"],
        [{ env: many }, "env"],
      ] as const;
      for (const [change, field] of wrong) {
        const refused = box.patchSettings({ ...change, wake: "never" });
        await expectRefusal(refused, "bad_request", { field });
      }
      const hosts = { internet: true, allow: ["example.com"] };
      // The platform can filter hosts.
      if (world.can.has("compare")) {
        const listed = box.patchSettings({ network: hosts, wake: "never" });
        await expectRefusal(listed, "unsupported", { field: "network.allow" });
      }
      expect(await box.settings()).toMatchObject({ version: 0, wake: "auto", envNames: ["KEPT"] });
    });

    it("[SV5] name services, which are kept over a pause and inherited by forks", async () => {
      const web = { name: "web", command: "exec sleep 1000" };
      const services = [{ ...web, port: 8000 }];
      const { box } = await createSandbox(world, { services: [web] });
      expect((await box.services()).services).toMatchObject([{ name: "web", restart: "always" }]);
      expect(await box.patchSettings({ services })).toMatchObject({ version: 1, services });
      const { id: from } = await box.makeCheckpoint();
      await box.pause();
      expect((await box.services()).services).toEqual([]);
      await box.start();
      await eventually(async () => {
        expect((await box.services()).services).toMatchObject([{ name: "web", port: 8000 }]);
      });
      const { box: fork } = await createSandbox(world, { from, start: false });
      expect((await fork.settings()).services).toMatchObject(services);
      const twice = [{ name: "web", command: "true" }];
      const refused = box.patchSettings({ services: [...twice, ...twice] });
      await expectRefusal(refused, "bad_request", { field: "services" });
    });

    it("[ME1] metrics are read while a container runs, and wake none", async () => {
      const { box } = await createSandbox(world);
      await box.exec({ command: "true" });
      const { metrics, limits: bounds } = await box.metrics({ last: 1 });
      expect(metrics).toHaveLength(1);
      expect(metrics[0]?.memoryBytes).toBeLessThanOrEqual(bounds?.memoryBytes ?? 0);
      await expectRefusal(box.metrics({ last: 0 }), "bad_request", { field: "last" });
      await box.pause();
      expect((await box.metrics({})).metrics).toEqual([]);
      expect((await box.get()).state).toBe("paused");
    });

    it("[ST5] `count` creates many alike, the same ones for the same key", async () => {
      const { box } = await createSandbox(world, { env: { A: "1" } });
      const { id: from } = await box.makeCheckpoint();
      const call = { from, count: 3, start: false };
      const options = { idempotencyKey: `forks-of-${from}` };
      const made = await world.berth.create(call, options);
      expect(made.others).toHaveLength(2);
      expect(made.from).toBe(from);
      const repeated = await world.berth.create(call, options);
      expect([repeated.id, repeated.others, repeated.found]).toEqual([made.id, made.others, true]);
      for (const id of made.others ?? []) {
        expect(await world.berth.sandbox(id).settings()).toMatchObject({ envNames: ["A"] });
      }
      const scope = { repo: "github.com/a/many" };
      const scoped = world.berth.create({ scope, count: 2, start: false });
      await expectRefusal(scoped, "bad_request", { field: "count" });
    });
  });
}
