import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { until } from "../../until.ts";
import { Agent, fenced, isRoot } from "../agent.ts";
import { codeOf, expectNothingLeft, Files, unfinished, unread } from "./files.ts";

const MiB = 1024 * 1024;

describe("the files of an agent", () => {
  const agent = Agent.forBlock({ tree: "subreaper" });
  const files = new Files(agent);
  expectNothingLeft(agent, async () => {
    await files.put("warm", "");
    await files.get("warm");
  });
  const pathOf = (name: string) => join(agent.workspace, name);

  test("[I1] what was written is read back to the byte, also by a command, whose user owns it", async () => {
    const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, n) => (n * 7) % 256));
    const made = await files.put("bytes", bytes);
    expect(made.status).toBe(201);
    expect(made.value).toMatchObject({ path: pathOf("bytes"), size: 70_000, mode: "644" });
    expect(Buffer.from(await (await files.get("bytes")).arrayBuffer()).equals(bytes)).toBe(true);
    const { stdout } = await agent.sh("sha256sum < bytes; echo changed > bytes; cat bytes");
    expect(stdout).toContain("changed");
    expect((await files.text("bytes")).trim()).toBe("changed");
    expect(await files.text("warm")).toBe("");
  });

  test("[I2] a read returns length, entity tag, time and name, and nothing that a browser would open", async () => {
    await files.put('wörld "1".html', "<b>");
    const { headers } = await files.get('wörld "1".html');
    expect(Object.fromEntries(headers)).toMatchObject({
      "content-length": "3",
      "content-type": "application/octet-stream",
      "x-content-type-options": "nosniff",
      "accept-ranges": "bytes",
      "content-disposition": `attachment; filename="w_rld _1_.html"; filename*=UTF-8''w%C3%B6rld%20%221%22.html`,
      etag: (await files.stat('wörld "1".html')).value?.etag,
    });
    expect(Date.parse(headers.get("last-modified") ?? "")).toBeGreaterThan(0);
  });

  test("[I3] one range is answered with just those bytes, one outside of the file with 416", async () => {
    await files.put("digits", "0123456789");
    await files.put("empty", "");
    const rows: [string, string, number, string, string?][] = [
      ["digits", "bytes=2-4", 206, "234", "bytes 2-4/10"],
      ["digits", "bytes=7-", 206, "789", "bytes 7-9/10"],
      ["digits", "bytes=-3", 206, "789", "bytes 7-9/10"],
      ["digits", "bytes=-300", 206, "0123456789", "bytes 0-9/10"],
      ["digits", "bytes=5-500", 206, "56789", "bytes 5-9/10"],
      ["digits", "bytes=1-2,4-5", 200, "0123456789"],
      ["digits", "lines=1-2", 200, "0123456789"],
      ["digits", "bytes=4-2", 200, "0123456789"],
      ["digits", "bytes=x", 200, "0123456789"],
      ["digits", "bytes=10-", 416, "bad_range", "bytes */10"],
      ["digits", "bytes=-0", 416, "bad_range", "bytes */10"],
      ["empty", "bytes=0-", 416, "bad_range", "bytes */0"],
    ];
    for (const [path, range, status, body, contentRange] of rows) {
      const response = await files.get(path, { range });
      expect(response.status, range).toBe(status);
      expect(response.headers.get("content-range"), range).toBe(contentRange ?? null);
      expect(status === 416 ? await codeOf(response) : await response.text(), range).toBe(body);
    }
    const etag = (await files.stat("digits")).value?.etag ?? "";
    const part = await files.get("digits", { range: "bytes=0-0", "if-range": etag });
    expect([part.status, await part.text()]).toEqual([206, "0"]);
    const complete = await files.get("digits", { range: "bytes=0-0", "if-range": '"other"' });
    expect([complete.status, await complete.text()]).toEqual([200, "0123456789"]);
  });

  test("[I4] an entity tag changes with every write, and conditions hold writes and reads to it", async () => {
    const first = (await files.put("tagged", "one")).value?.etag ?? "";
    const none = await files.get("tagged", { "if-none-match": `"x", W/${first}` });
    expect([none.status, await none.text()]).toEqual([304, ""]);
    const put = (body: string, headers: Record<string, string>) =>
      files.put("tagged", body, {}, { headers });
    const second = (await put("two", { "if-match": first })).value?.etag ?? "";
    expect(second).not.toBe(first);
    const changed = { status: 412, code: "file_changed", error: { etag: second } };
    expect(await put("three", { "if-match": first })).toMatchObject(changed);
    expect((await put("three", { "if-none-match": "*" })).code).toBe("file_changed");
    expect(await files.text("tagged")).toBe("two");
    const absent = { headers: { "if-match": "*" } };
    expect((await files.put("untagged", "x", {}, absent)).code).toBe("file_changed");
    const fresh = { headers: { "if-none-match": "*" } };
    expect((await files.put("untagged", "x", {}, fresh)).status).toBe(201);
  });

  test("[I4] of twenty writes with the same condition one wins, and its bytes stay", async () => {
    const etag = (await files.put("contended", "start")).value?.etag ?? "";
    const all = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        files.put("contended", `writer ${n}`, {}, { headers: { "if-match": etag } }),
      ),
    );
    const winners = all.flatMap(({ status }, n) => (status === 200 ? [n] : []));
    expect(winners.length).toBe(1);
    expect(all.filter(({ code }) => code === "file_changed").length).toBe(19);
    expect(await files.text("contended")).toBe(`writer ${winners[0]}`);
  });

  test("[I5] a body that ends too early leaves the old file and nothing else", async () => {
    await files.put("kept", "old");
    for (const announced of [true, false]) {
      const parts = ["half of it", "never"];
      const caller = new AbortController();
      const body = new ReadableStream<Uint8Array>(
        {
          async pull(controller) {
            const part = parts.shift();
            if (part === "never") {
              await until("it is being written", () => unfinished(agent).length === 1);
              caller.abort();
            } else controller.enqueue(Buffer.from(part ?? ""));
          },
        },
        { highWaterMark: 0 },
      );
      const headers = announced ? { "content-length": "100" } : {};
      const init = { signal: caller.signal, duplex: "half", headers } as RequestInit;
      await expect(files.send("kept", body, {}, init)).rejects.toThrow();
      await until("nothing unfinished is left", () => unfinished(agent).length === 0);
      expect(await files.text("kept")).toBe("old");
    }
  });

  test("[I7] a file that is replaced keeps its mode, a mode that is given counts, a link is followed", async () => {
    expect((await files.put("moded", "1", { mode: "755" })).value?.mode).toBe("755");
    expect((await files.put("moded", "2")).value?.mode).toBe("755");
    expect((await files.put("moded", "3", { mode: "600" })).value?.mode).toBe("600");
    expect(statSync(pathOf("moded")).mode & 0o777).toBe(0o600);
    await agent.sh("mkdir real; ln -s real/file link; ln -s link over");
    expect((await files.put("over", "through")).status).toBe(201);
    expect(readFileSync(pathOf("real/file"), "utf8")).toBe("through");
    expect((await files.stat("over")).value).toMatchObject({ kind: "link", target: "link" });
    expect(await files.text("link")).toBe("through");
  });

  test("[I7] missing folders are created only if the call says so", async () => {
    expect((await files.put("m1/m2/file", "x")).code).toBe("file_not_found");
    expect(existsSync(pathOf("m1"))).toBe(false);
    const made = await files.put("m1/./m2//file", "x", { mkdirs: true });
    expect(made.value?.path).toBe(pathOf("m1/m2/file"));
    expect(statSync(pathOf("m1/m2")).mode & 0o777).toBe(0o755);
    expect(await files.text("m1/m2/../m2/file")).toBe("x");
    expect((await files.stat("m1/m2/../m2")).value?.path).toBe(pathOf("m1/m2"));
  });

  test.runIf(isRoot)("[I5] a full disk is reported, and only the old file stays", async () => {
    const small = pathOf("small");
    mkdirSync(small);
    const mount = ["-t", "tmpfs", "-o", "size=1m,mode=777", "none", small];
    expect(spawnSync("mount", mount).status).toBe(0);
    try {
      await files.put("small/file", "old");
      const full = await files.put("small/file", Buffer.alloc(3 * MiB));
      expect(full).toMatchObject({ status: 507, code: "disk_full" });
      expect(readdirSync(small)).toEqual(["file"]);
      expect(await files.text("small/file")).toBe("old");
      expect((await files.remove("small", { recursive: true })).code).toBe("bad_request");
      expect((await files.move({ from: "small/file", to: "file" })).code).toBe("bad_request");
      expect(await files.text("small/file")).toBe("old");
    } finally {
      expect(spawnSync("umount", [small]).status).toBe(0);
    }
    await files.remove("small");
  });

  test("[I13] one file of 1 GiB is uploaded and downloaded with flat memory", async () => {
    const chunk = Buffer.alloc(MiB, 7);
    const count = 1024;
    const before = agent.memoryKiB();
    let sent = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          if (sent++ === count) controller.close();
          else controller.enqueue(chunk);
        },
      },
      { highWaterMark: 2 },
    );
    const up = await files.put("large", body, {}, { duplex: "half" } as RequestInit);
    expect(up.value?.size).toBe(count * MiB);
    const during = agent.memoryKiB();
    let bytes = 0;
    const down = await files.get("large");
    expect(down.headers.get("content-length")).toBe(String(count * MiB));
    for await (const piece of down.body as unknown as AsyncIterable<Uint8Array>) {
      bytes += piece.length;
    }
    expect(bytes).toBe(count * MiB);
    expect(Math.max(during, agent.memoryKiB()) - before).toBeLessThan(128 * 1024);
    await files.remove("large");
  });

  test("[I14] two hundred reads at once each get their own file, and leave no descriptor", async () => {
    const names = Array.from({ length: 50 }, (_, n) => `own${n}`);
    for (const name of names) await files.put(name, name.repeat(20_000));
    const reads = [...names, ...names, ...names, ...names].map(async (name) => {
      expect((await files.text(name)) === name.repeat(20_000), name).toBe(true);
    });
    expect((await Promise.all(reads)).length).toBe(200);
  });

  test("[I16] large downloads count as transfers until they are sent or cut off", async () => {
    await agent.sh("head -c 18000000 /dev/zero > zeros");
    const before = agent.descriptors();
    const sockets: Socket[] = [];
    const path = "/v1/files?path=zeros";
    for (let n = 0; n < limits.fileTransfersMax; n += 1) sockets.push(await unread(agent, path));
    expect(sockets.length).toBe(64);
    expect(await codeOf(await files.get("zeros"))).toBe("too_many");
    expect((await files.put("one-more", "x")).code).toBe("too_many");
    sockets.pop()?.destroy();
    const part = { range: "bytes=0-9" };
    await until("a place is free", async () => (await files.get("zeros", part)).ok);
    await until("a place is free", async () => (await files.put("one-more", "x")).status === 201);
    for (const socket of sockets) socket.destroy();
    await until("all descriptors are closed", () => agent.descriptors() <= before + 2);
    // Nothing tells the agent that these were read to their end: it checks before it refuses.
    for (let n = 0; n < limits.fileTransfersMax + 6; n += 1) {
      expect((await (await files.get("zeros")).arrayBuffer()).byteLength).toBe(18_000_000);
    }
    await files.remove("zeros");
  });

  test("[L13] without a session paths begin at the workspace; an unknown session is refused", async () => {
    expect((await files.stat(".")).value?.path).toBe(agent.workspace);
    const response = await agent.request("/v1/files/stat?path=warm&session=nobody");
    expect([response.status, await codeOf(response)]).toEqual([404, "not_found"]);
  });

  test("[I15] other methods and routes are refused", async () => {
    expect((await agent.request("/v1/files?path=x", { method: "POST" })).status).toBe(405);
    expect((await agent.request("/v1/files/nothing?path=x")).status).toBe(404);
  });
});

test("[I6] a drain ends an upload in progress, and a write below the fence is refused", async () => {
  await using agent = await Agent.start({ tree: "subreaper" });
  const files = new Files(agent);
  await files.put("fenced", "old");
  const level = 7;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(Buffer.from("half")),
  });
  const init = { ...fenced(level), duplex: "half" } as RequestInit;
  const sent = files.put("fenced", body, {}, init);
  await until("it is being written", () => unfinished(agent).length === 1);
  expect(await agent.raiseFence(level + 1, true)).toEqual({ fence: level + 1, left: 0 });
  expect(unfinished(agent)).toEqual([]);
  expect((await sent).code).toBe("operation_interrupted");
  expect(await files.text("fenced")).toBe("old");
  expect((await files.put("fenced", "x", {}, fenced(level))).code).toBe("stale_fence");
  const mkdir = { method: "POST", body: JSON.stringify({ path: "fenced-out" }), ...fenced(level) };
  expect(await codeOf(await agent.request("/v1/files/mkdir", mkdir))).toBe("stale_fence");
  expect(existsSync(join(agent.workspace, "fenced-out"))).toBe(false);
  expect((await files.put("fenced", "new", {}, fenced(level + 1))).status).toBe(200);
});
