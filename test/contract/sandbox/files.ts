/**
 * The contract of files: bytes, conditions, paths. Links, owners and full disks need a real file system and are
 * tested elsewhere.
 */
import { describe, expect, it } from "vitest";
import type { GateOptions, SandboxApi } from "../../../src/protocol/api.ts";
import { limits } from "../../../src/protocol/limits.ts";
import {
  acquireLease,
  createSandbox,
  eventually,
  expectRefusal,
  expectRefusals,
  refusal,
  type World,
} from "./world.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);

async function read(body: AsyncIterable<Uint8Array>): Promise<string> {
  let text = "";
  for await (const piece of body) text += new TextDecoder("latin1").decode(piece);
  return text;
}

const textOf = async (box: SandboxApi, ...asked: Parameters<SandboxApi["readFile"]>) =>
  read((await box.readFile(...asked)).body);

/** A body of the declared length, unless it breaks off earlier. */
function streamOf(text: string[], breaksOff = false) {
  const pieces = [...text];
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = pieces.shift();
      if (piece !== undefined) controller.enqueue(bytesOf(piece));
      else if (breaksOff) controller.error(new Error("it breaks off"));
      else controller.close();
    },
  });
  return { stream, bytes: text.join("").length };
}

/** Stalls after so many megabytes: more than the buffers on the way hold, so that the agent has begun by then. */
function endless(megabytes: number) {
  let end = () => {};
  let left = megabytes;
  let stream = new ReadableStream<Uint8Array>();
  const isTaken = new Promise<void>((resolve) => {
    stream = new ReadableStream<Uint8Array>({
      pull(controller) {
        end = () => controller.error(new Error("over"));
        if (left-- > 0) return controller.enqueue(new Uint8Array(2 ** 20));
        resolve();
        return new Promise(() => undefined);
      },
    });
  });
  return { stream, isTaken, end: () => end() };
}

const looks = (box: SandboxApi) => [
  () => box.readFile("there"),
  () => box.stat("there"),
  () => box.listFiles(),
  () => box.watchFiles(),
  () => box.downloadArchive("."),
];

const writes = (box: SandboxApi, options: GateOptions = {}) => [
  () => box.writeFile("there", bytesOf("new"), options),
  () => box.writeFile("streamed", streamOf(["new"]), options),
  () => box.mkdir({ path: "made" }, options),
  () => box.move({ from: "made", to: "moved" }, options),
  () => box.uploadArchive(".", new Uint8Array(1024), options),
  () => box.removeFile("moved", options),
];

export function fileContract(world: World): void {
  describe("the files of a sandbox", () => {
    it("[FD1] come back byte for byte, with size and entity tag", async () => {
      const { box } = await createSandbox(world);
      const all = Uint8Array.from({ length: 70_000 }, (_, n) => (n * 7) & 255);
      const view = await box.writeFile("a b/ü", all, { mkdirs: true, mode: "600" });
      expect(view).toMatchObject({ path: "/workspace/a b/ü", kind: "file", size: 70_000 });
      expect(view.mode).toBe("600");
      const { body, ...facts } = await box.readFile("a b/ü");
      expect(facts).toMatchObject({ etag: view.etag, size: 70_000, start: 0, end: 70_000 });
      expect(await read(body)).toBe(new TextDecoder("latin1").decode(all));
      expect(await box.stat("/workspace/a b/ü")).toEqual(view);
      expect(await textOf(box, "/workspace/./a b/../a b/ü", { range: { start: 0, end: 3 } })).toBe(
        "\0\x07\x0e",
      );
    });

    it("[FD1] may be empty, and may come as a stream", async () => {
      const { box } = await createSandbox(world);
      expect((await box.writeFile("empty", new Uint8Array(0))).size).toBe(0);
      const { body, ...facts } = await box.readFile("empty");
      expect(facts).toMatchObject({ size: 0, start: 0, end: 0 });
      expect(await read(body)).toBe("");
      const view = await box.writeFile("streamed", streamOf(["one ", "two ", "three"]));
      expect(view.size).toBe(13);
      expect(await textOf(box, "streamed")).toBe("one two three");
    });

    it("[FD2] can be read in part", async () => {
      const { box } = await createSandbox(world);
      await box.writeFile("digits", bytesOf("0123456789"));
      const part = await box.readFile("digits", { range: { start: 3, end: 6 } });
      expect(part).toMatchObject({ start: 3, end: 6, size: 10 });
      expect(await read(part.body)).toBe("345");
      expect(await textOf(box, "digits", { range: { start: 8 } })).toBe("89");
      expect(await textOf(box, "digits", { range: { start: 8, end: 99 } })).toBe("89");
      await expectRefusal(box.readFile("digits", { range: { start: 10 } }), "bad_range", {
        size: 10,
      });
    });

    it("[FD3] are replaced only under the given condition", async () => {
      const { box } = await createSandbox(world);
      const first = await box.writeFile("one", bytesOf("1"), { ifNoneMatch: "*" });
      await expectRefusal(
        box.writeFile("one", bytesOf("2"), { ifNoneMatch: "*" }),
        "file_changed",
        { etag: first.etag },
      );
      const second = await box.writeFile("one", bytesOf("2"), { ifMatch: first.etag ?? "" });
      expect(second.etag).not.toBe(first.etag);
      await expectRefusal(
        box.writeFile("one", bytesOf("3"), { ifMatch: first.etag ?? "" }),
        "file_changed",
        { etag: second.etag },
      );
      expect(await textOf(box, "one")).toBe("2");
      const none = await refusal(box.writeFile("none", bytesOf("1"), { ifMatch: "*" }));
      expect(none.code).toBe("file_changed");
      await expectRefusal(box.stat("none"), "file_not_found");
    });

    it("[FD20] a condition or an address that is too long for a sandbox is refused by its name, and nothing happens", async () => {
      const { box } = await createSandbox(world);
      await box.writeFile("one", bytesOf("1"));
      const long = { ifMatch: `"${"x".repeat(20_000)}"` };
      const tooLong = { field: "headers", bytesMax: limits.passedHeadBytesMax };
      await expectRefusal(box.writeFile("one", bytesOf("2"), long), "headers_too_large", tooLong);
      const page = box.listFiles({ cursor: "x".repeat(limits.passedHeadBytesMax) });
      await expectRefusal(page, "url_too_long", { field: "url" });
      expect(await textOf(box, "one")).toBe("1");
      // The longest path is still well within.
      await expectRefusal(box.stat(`${"ü".repeat(100)}/`.repeat(20)), "file_not_found");
    });

    it("[FD3] of many concurrent writers that saw the same version, one succeeds", async () => {
      const { box } = await createSandbox(world);
      const { etag = "" } = await box.writeFile("counter", bytesOf("0"));
      const tries = Array.from({ length: 8 }, (_, n) =>
        box.writeFile("counter", bytesOf(`from ${n}`), { ifMatch: etag }).then(
          () => n,
          (error) => error.code,
        ),
      );
      const came = await Promise.all(tries);
      const won = came.filter((result) => typeof result === "number");
      expect(won).toHaveLength(1);
      expect(came.filter((result) => result === "file_changed")).toHaveLength(7);
      expect(await textOf(box, "counter")).toBe(`from ${won[0]}`);
    });

    it("[FD4] whose body breaks off are not written, and nothing is left next to them", async () => {
      const { box } = await createSandbox(world);
      await box.writeFile("whole", bytesOf("old"));
      for (const path of ["whole", "new"]) {
        const { stream } = streamOf(["half ", "of it"], true);
        await expect(box.writeFile(path, { stream, bytes: 1000 })).rejects.toThrow();
      }
      // The agent may still be about to notice that the caller broke off.
      const alone = acquireLease(await box.acquireLease({ waitMs: 20_000 }));
      await box.releaseLease(alone.token);
      expect(await textOf(box, "whole")).toBe("old");
      const { files } = await box.listFiles({ depth: 9 });
      expect(files.map(({ path }) => path)).toEqual(["/workspace/whole"]);
    });

    it("[FD5] can be listed in pages, moved and removed", async () => {
      const { box } = await createSandbox(world);
      for (const name of ["b/2", "b/1", "a", "c"]) {
        await box.writeFile(name, bytesOf(name), { mkdirs: true });
      }
      const paths: string[] = [];
      let cursor: string | null = null;
      do {
        const more: { cursor?: string } = cursor === null ? {} : { cursor };
        const page = await box.listFiles({ depth: 2, limit: 2, ...more });
        expect(page.files.length).toBeLessThanOrEqual(2);
        paths.push(...page.files.map(({ path }) => path.slice("/workspace/".length)));
        cursor = page.nextCursor;
      } while (cursor !== null);
      expect(paths).toEqual(["a", "b", "b/1", "b/2", "c"]);
      expect((await box.move({ from: "b", to: "d" })).path).toBe("/workspace/d");
      await expectRefusal(box.move({ from: "a", to: "c" }), "file_exists");
      await box.move({ from: "a", to: "c", overwrite: true });
      expect(await textOf(box, "c")).toBe("a");
      await expectRefusal(box.removeFile("d"), "not_empty");
      expect(await box.removeFile("d", { recursive: true })).toEqual({ removed: 3 });
      expect((await box.listFiles()).files.map(({ path }) => path)).toEqual(["/workspace/c"]);
    });

    it("[FD5] are in folders that are created with or without missing parents", async () => {
      const { box } = await createSandbox(world);
      await expectRefusal(box.mkdir({ path: "x/y" }), "file_not_found");
      expect((await box.mkdir({ path: "x/y", parents: true })).kind).toBe("folder");
      expect((await box.mkdir({ path: "x/y", parents: true })).path).toBe("/workspace/x/y");
      await expectRefusal(box.mkdir({ path: "x/y" }), "file_exists");
      await expectRefusal(box.readFile("x/y"), "not_a_file");
      await expectRefusal(box.writeFile("x/z/file", bytesOf("1")), "file_not_found");
    });

    it("[FD6] of a session are below its current folder, otherwise below the workspace", async () => {
      const { box } = await createSandbox(world, { cwd: "/tmp" });
      const { id } = await box.createSession();
      await box.execInSession(id, { command: "mkdir /workspace/sub && cd /workspace/sub" });
      await box.writeFile("mine", bytesOf("1"), { session: id });
      await box.mkdir({ path: "folder", session: id });
      await box.move({ from: "mine", to: "folder/mine", session: id });
      expect((await box.stat("folder/mine", { session: id })).path).toBe(
        "/workspace/sub/folder/mine",
      );
      expect((await box.stat("sub/folder/mine")).size).toBe(1);
      await expectRefusal(box.stat("mine", { session: "nobodys" }), "not_found");
    });

    it("[FD6] of a session of an earlier incarnation are refused without asking the agent", async () => {
      const { box } = await createSandbox(world);
      const { id } = await box.createSession();
      await box.writeFile("kept", bytesOf("1"));
      await box.pause({ force: true });
      const options = { session: id };
      const calls = [
        () => box.stat("kept", options),
        () => box.readFile("kept", options),
        () => box.writeFile("kept", bytesOf("2"), options),
        () => box.removeFile("kept", options),
        () => box.mkdir({ path: "more", ...options }),
      ];
      await expectRefusals(calls, "stale_handle");
      expect((await box.get()).state).toBe("paused");
      await box.start();
      await expectRefusals(calls, "stale_handle");
      expect(await textOf(box, "kept")).toBe("1");
    });

    it("[FD7] are written only by the holder while there is one, and read by everyone", async () => {
      const { box } = await createSandbox(world);
      await box.writeFile("there", bytesOf("old"));
      const { token } = acquireLease(await box.acquireLease({ holder: "one", ttlMs: 300_000 }));
      await expectRefusals(writes(box), "lease_held", { holder: "one" });
      await expectRefusal(box.cloneRepository({ url: "https://git.example/one" }), "lease_held");
      expect((await box.listFiles()).files).toHaveLength(1);
      expect(await textOf(box, "there")).toBe("old");
      for (const write of writes(box, { lease: token })) await write();
      expect(await textOf(box, "there")).toBe("new");
      await box.releaseLease(token);
      await box.writeFile("there", bytesOf("alone"), { waitMs: 10_000 });
      expect((await box.lease()).state).toBe("free");
    });

    it("[FD7] leave nothing behind when the lease of their upload is lost", async () => {
      const { box } = await createSandbox(world);
      await box.writeFile("there", bytesOf("old"));
      const { token } = acquireLease(await box.acquireLease({ holder: "one", ttlMs: 300_000 }));
      const { stream, isTaken, end } = endless(32);
      const writing = refusal(box.writeFile("there", { stream, bytes: 2 ** 30 }, { lease: token }));
      writing.catch(() => undefined);
      await isTaken;
      await expectRefusal(box.releaseLease(token), "lease_busy");
      await box.breakLease("another needs it");
      const next = acquireLease(await box.acquireLease({ holder: "two", waitMs: 20_000 }));
      expect((await writing).code).toBe("operation_interrupted");
      end();
      expect(await textOf(box, "there")).toBe("old");
      await box.releaseLease(next.token);
    });

    it("[FD8] are read without waking a container, and written by waking one", async () => {
      const { id, box } = await createSandbox(world);
      await box.writeFile("there", bytesOf("old"));
      await box.pause({ force: true });
      const { starts } = await world.inside(id);
      expect(starts.length).toBe(1);
      await expectRefusals(looks(box), "not_running", { state: "paused" });
      await expectRefusals(writes(box, { wake: false }), "not_running");
      expect((await world.inside(id)).starts).toEqual(starts);
      expect((await box.get()).state).toBe("paused");
      expect((await box.writeFile("more", bytesOf("1"))).size).toBe(1);
      expect(await textOf(box, "there")).toBe("old");
      await box.destroy();
      for (const call of [...looks(box), ...writes(box)]) {
        await expectRefusal(call(), "sandbox_destroyed");
      }
    });

    it("[FD9] can be watched: changes are reported as they happen", async () => {
      const { box } = await createSandbox(world);
      const stream = await box.watchFiles();
      let received = "";
      const reading = (async () => {
        for await (const piece of stream) {
          received += new TextDecoder().decode(piece);
          if (received.includes("/workspace/seen/last")) break;
        }
      })();
      await eventually(async () => expect(received).toContain("event: ready"));
      await box.mkdir({ path: "seen" });
      await box.writeFile("seen/last", bytesOf("1"));
      await reading;
      expect(received).toContain("event: change");
      expect(received).toContain('"what":"made"');
    });
  });
}
