/** The contract of metadata: atomic requests, versions, limits, the copy inside the sandbox. */
import { describe, expect, it } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import {
  acquireLease,
  createSandbox,
  eventsOfType,
  eventually,
  expectRefusal,
  itWith,
  type World,
} from "./world.ts";

export function metadataContract(world: World): void {
  const itEvicting = itWith(world, "evict");
  const copied = (id: string, version: number, metadata: Record<string, string>) =>
    eventually(async () =>
      expect(await world.inside(id)).toMatchObject({ copied: version, metadata }),
    );

  describe("metadata", () => {
    it("[N1] [N2] sets, removes, leaves alone, and counts only real changes", async () => {
      const { box } = await createSandbox(world, { metadata: { a: "1", b: "2" } });
      expect(await box.metadata()).toEqual({ metadata: { a: "1", b: "2" }, version: 1 });
      expect(await box.patchMetadata({ b: null, c: "3" })).toEqual({
        metadata: { a: "1", c: "3" },
        version: 2,
      });
      expect(await box.patchMetadata({ c: "" })).toEqual({ metadata: { a: "1" }, version: 3 });
      expect(await box.patchMetadata({})).toEqual({ metadata: { a: "1" }, version: 3 });
      expect(await box.patchMetadata({ a: "1", gone: null })).toMatchObject({ version: 3 });
      expect(await box.metadata()).toEqual({ metadata: { a: "1" }, version: 3 });
    });

    it("[N5] [N6] refuses what exceeds a limit, and keeps nothing of it", async () => {
      const keys = Object.fromEntries(
        Array.from({ length: limits.metadataKeysMax }, (_, n) => [`k${n}`, "v"]),
      );
      const { box } = await createSandbox(world, { metadata: keys });
      const before = await box.metadata();
      await expectRefusal(box.patchMetadata({ k0: "new", more: "1" }), "bad_request", {
        field: "metadata",
      });
      expect(await box.metadata()).toEqual(before);
      expect((await box.patchMetadata({ k0: null, more: "1" })).version).toBe(2);

      const big = "é".repeat(limits.metadataValueBytesMax / 2);
      const large = Object.fromEntries(Array.from({ length: 15 }, (_, n) => [`l${n}`, big]));
      const { box: full } = await createSandbox(world, { metadata: large });
      const left = limits.metadataBytesMax - 15 * 1024 - 35;
      expect((await full.patchMetadata({ fits: "x".repeat(left - 4) })).version).toBe(2);
      await expectRefusal(full.patchMetadata({ fits: "x".repeat(left - 3) }), "bad_request");
    });

    it("[Y11] is checked at create as in a patch", async () => {
      const keys = (count: number) =>
        Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, "v"]));
      await expectRefusal(world.berth.create({ metadata: keys(65), start: false }), "bad_request", {
        field: "metadata",
      });
      await expectRefusal(
        world.berth.create({ metadata: { "a b": "1" }, start: false }),
        "bad_request",
      );
    });

    it("[N12] accepts a conditional change only for the current version", async () => {
      const { box } = await createSandbox(world, { metadata: { a: "1" } });
      await expectRefusal(box.patchMetadata({ a: "2" }, { ifMatch: 0 }), "version_mismatch", {
        version: 1,
      });
      expect((await box.patchMetadata({ a: "2" }, { ifMatch: 1 })).version).toBe(2);
      const racers = await Promise.allSettled(
        Array.from({ length: 8 }, (_, n) => box.patchMetadata({ a: `by ${n}` }, { ifMatch: 2 })),
      );
      expect(racers.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      expect((await box.metadata()).version).toBe(3);
    });

    it("[N20] can be replaced as a whole, for the version that was read", async () => {
      const { box } = await createSandbox(world, { metadata: { a: "1", b: "2" } });
      expect(await box.replaceMetadata({ c: "3", d: null }, { ifMatch: 1 })).toEqual({
        metadata: { c: "3" },
        version: 2,
      });
      await expectRefusal(box.replaceMetadata({}, { ifMatch: 1 }), "version_mismatch");
      expect(await box.replaceMetadata({}, { ifMatch: 2 })).toEqual({ metadata: {}, version: 3 });
    });

    it("[Y12] loses none of many changes at once", async () => {
      const { id, box } = await createSandbox(world);
      const answers = await Promise.all(
        Array.from({ length: 40 }, (_, n) => box.patchMetadata({ [`k${n}`]: String(n) })),
      );
      expect(new Set(answers.map(({ version }) => version)).size).toBe(40);
      const after = await box.metadata();
      expect(Object.keys(after.metadata)).toHaveLength(40);
      expect(after.version).toBe(40);
      await copied(id, 40, after.metadata);
    });

    it("[Y13] changes while somebody holds the lease and a command runs", async () => {
      const { id, box } = await createSandbox(world);
      const { token } = acquireLease(await box.acquireLease({ holder: "one" }));
      const slept = box.exec({ command: "sleep 3" }, { lease: token });
      await eventually(async () => expect((await world.inside(id)).running).toBe(1));
      expect((await box.patchMetadata({ a: "1" })).version).toBe(1);
      expect((await world.inside(id)).running).toBe(1);
      expect((await slept).exitCode).toBe(0);
    });

    itEvicting("[Y14] is kept and may change while the sandbox is paused", async () => {
      const { id, box } = await createSandbox(world, { metadata: { a: "1" } });
      await box.pause();
      expect((await box.patchMetadata({ b: "2" })).version).toBe(2);
      await world.evict(id);
      expect((await box.start()).metadata).toEqual({ a: "1", b: "2" });
      await copied(id, 2, { a: "1", b: "2" });
    });

    itEvicting("[Y15] updates the copy inside after each change and each start", async () => {
      const { id, box } = await createSandbox(world, { metadata: { a: "1" } });
      await copied(id, 1, { a: "1" });
      await box.patchMetadata({ a: "2" });
      await copied(id, 2, { a: "2" });
      await world.evict(id);
      await box.patchMetadata({ a: "3" });
      await box.exec({ command: "true" });
      await copied(id, 3, { a: "3" });
    });

    it("[N16] reports each change in an event: keys set, keys removed", async () => {
      const { box } = await createSandbox(world, { metadata: { a: "1", b: "2" } });
      await box.patchMetadata({ a: "9", b: null, c: "3" });
      await box.patchMetadata({});
      const events = await eventsOfType(box, "metadata");
      expect(events.at(-1)).toEqual({
        type: "metadata",
        version: 2,
        set: { a: "9", c: "3" },
        removed: ["b"],
      });
      expect(events.filter(({ version }) => version === 2)).toHaveLength(1);
    });
  });
}
