import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { until } from "../../until.ts";
import { Agent, fenced, isRoot } from "../agent.ts";
import { codeOf, Files, unfinished, unread } from "../files/files.ts";
import { Archives, plain, streaming } from "./archives.ts";
import { archive, end, member } from "./tar-maker.ts";

const MiB = 1024 * 1024;
const half = Buffer.concat([
  member({ name: "one", body: "one" }),
  member({ name: "two", body: "", size: 1000 }),
  Buffer.from("half of two"),
]);

/** Sends the given bytes and then nothing more, without ending. */
function stuck(bytes: Uint8Array): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(bytes) });
}

describe("the ends of archives", () => {
  test("[AR10] a drain ends an upload of an archive and leaves nothing of it; below the fence none begins", async () => {
    await using agent = await Agent.start({ tree: "subreaper" });
    const archives = new Archives(agent);
    const init = { ...streaming, ...fenced(7) };
    const sent = archives.put("drained", stuck(half), plain, init);
    await until("it is being unpacked", () => unfinished(agent).length >= 1);
    expect(await agent.raiseFence(8, true)).toEqual({ fence: 8, left: 0 });
    expect((await sent).code).toBe("operation_interrupted");
    expect(readdirSync(agent.workspace)).toEqual([]);
    const late = await archives.put("late", archive({ name: "x" }), plain, init);
    expect(late.code).toBe("stale_fence");
    expect(readdirSync(agent.workspace)).toEqual([]);
  });

  test("[AR10] a caller that disconnects leaves nothing, or in a folder with entries the members so far", async () => {
    await using agent = await Agent.start({ tree: "subreaper" });
    const archives = new Archives(agent);
    await agent.sh("mkdir full; echo old > full/two");
    for (const path of ["gone", "full"]) {
      const caller = new AbortController();
      const sent = archives.put(path, stuck(half), plain, { ...streaming, signal: caller.signal });
      await until("it is being unpacked", () => unfinished(agent).length >= 1);
      caller.abort();
      await expect(sent).rejects.toThrow();
      await until("nothing unfinished is left", () => unfinished(agent).length === 0);
    }
    expect(readdirSync(agent.workspace)).toEqual(["full"]);
    expect(readFileSync(join(agent.workspace, "full/one"), "utf8")).toBe("one");
    expect(readFileSync(join(agent.workspace, "full/two"), "utf8")).toBe("old\n");
  });

  test("[I5] [AR10] what a killed agent left has no name, or is hidden and removed by the next archive", async () => {
    await using agent = await Agent.start({ tree: "subreaper" });
    const files = new Files(agent);
    const uploaded = files
      .send("file", stuck(Buffer.from("half")), {}, streaming)
      .catch(() => "cut");
    await until("it is being written", () => unfinished(agent).length === 1);
    agent.process.kill("SIGKILL");
    expect(await uploaded).toBe("cut");
    await until("the agent has ended", () => agent.process.signalCode !== null);
    expect(readdirSync(agent.workspace)).toEqual([]);
    for (const folder of [agent.workspace, agent.run]) rmSync(folder, { recursive: true });

    await using next = await Agent.start({ tree: "subreaper" });
    const archives = new Archives(next);
    await next.sh(
      "mkdir -p .berth-0123456789abcdef/deep; echo x > .berth-0123456789abcdef/deep/x; chmod 500 .berth-0123456789abcdef/deep; echo y > y",
    );
    const listed = (await new Files(next).list(".")).value?.files.map(({ path }) => path);
    expect(listed).toEqual([join(next.workspace, "y")]);
    expect((await archives.bytes(".")).includes(".berth-")).toBe(false);
    expect((await archives.put("new", archive({ name: "x", body: "x" }))).status).toBe(200);
    expect(readdirSync(next.workspace).sort()).toEqual(["new", "y"]);
  });

  test.runIf(isRoot)(
    "[AR11] a file that a command may not read breaks the archive off, so that a part never passes for the whole",
    async () => {
      await using agent = await Agent.start({ tree: "subreaper" });
      const archives = new Archives(agent);
      await agent.sh("mkdir secret; echo words > secret/file; chmod 0 secret/file");
      expect(await codeOf(await archives.get("secret"))).toBe("file_forbidden");
      await agent.sh("mkdir late; for n in one two; do head -c 60000000 /dev/zero > late/$n; done");
      const broken = await archives.get("late");
      expect(broken.status).toBe(200);
      // The first member is being written, the second not yet: the rest waits at the agent.
      await agent.sh("chmod 0 late/one late/two");
      await expect(broken.arrayBuffer()).rejects.toThrow();
    },
  );

  test("[AR8] half a gigabyte is uploaded and downloaded as an archive with flat memory", async () => {
    await using agent = await Agent.start({ tree: "subreaper" });
    const archives = new Archives(agent);
    await archives.put("warm", archive({ name: "x" }));
    const size = 512 * MiB;
    const chunk = Buffer.alloc(MiB, 7);
    let left = size / MiB + 2;
    const head = member({ name: "large", size: size.toString(8).padStart(11, "0") });
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          left -= 1;
          if (left === size / MiB + 1) controller.enqueue(head);
          else if (left > 0) controller.enqueue(chunk);
          else {
            controller.enqueue(end);
            controller.close();
          }
        },
      },
      { highWaterMark: 2 },
    );
    const before = agent.memoryKiB();
    const put = await archives.put("large", body, plain, streaming);
    expect(put.value, JSON.stringify(put)).toEqual({ entries: 1, bytes: size });
    const during = agent.memoryKiB();
    let bytes = 0;
    const down = await archives.get("large", "application/zstd");
    for await (const piece of down.body as unknown as AsyncIterable<Uint8Array>)
      bytes += piece.length;
    expect(bytes).toBeGreaterThan(10_000);
    expect(Math.max(during, agent.memoryKiB()) - before).toBeLessThan(96 * 1024);
  });

  test("[I17] a body that is announced too large is refused at once, one that stalls times out", async () => {
    await using agent = await Agent.start({ tree: "subreaper" });
    const announce = (path: string, bytes: number) => {
      const head = `content-type: ${plain}\r\ncontent-length: ${bytes}\r\n`;
      return said(agent, `PUT ${path} HTTP/1.1\r\n${head}`, "half of it");
    };
    const [large, larger, silent, still] = await Promise.all([
      announce("/v1/files?path=large", limits.fileBytesMax + 1),
      announce("/v1/archive?path=large", limits.fileBytesMax + 1),
      announce("/v1/files?path=silent", 1000),
      announce("/v1/archive?path=silent", 1000),
    ]);
    for (const answer of [large, larger]) expect(answer).toMatch(/^HTTP\/1.1 413 .*"too_large"/s);
    for (const answer of [silent, still])
      expect(answer).toMatch(/^HTTP\/1.1 408 .*"body_timeout"/s);
    expect(readdirSync(agent.workspace)).toEqual([]);
    await until("nothing unfinished is left", () => unfinished(agent).length === 0);
  }, 120_000);

  test("[AR12] the number of concurrent transfers is limited, and the next is refused until one ends", async () => {
    await using agent = await Agent.start({ tree: "subreaper" });
    const archives = new Archives(agent);
    await agent.sh("head -c 30000000 /dev/zero > zeros");
    const descriptors = agent.descriptors();
    const path = "/v1/archive?path=zeros";
    const sockets: Socket[] = [];
    for (let n = 0; n < limits.fileTransfersMax; n += 1) sockets.push(await unread(agent, path));
    expect(sockets.length).toBe(64);
    expect(await codeOf(await archives.get("zeros"))).toBe("too_many");
    expect((await archives.put("x", archive({ name: "x" }))).code).toBe("too_many");
    expect((await new Files(agent).put("x", "x")).code).toBe("too_many");
    expect(existsSync(join(agent.workspace, "x"))).toBe(false);
    sockets.pop()?.destroy();
    await until("its place is free", async () => (await archives.get("zeros")).status === 200);
    for (const socket of sockets) socket.destroy();
    await until("all descriptors are closed", () => agent.descriptors() <= descriptors + 2);
  });
});

/** The response to a call whose body stalls. */
function said({ port, secret }: Agent, head: string, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.write(`${head}host: agent\r\nauthorization: Bearer ${secret}\r\n\r\n${body}`);
    });
    let text = "";
    socket.once("error", reject);
    socket.on("data", (bytes) => {
      text += bytes;
      if (!text.endsWith("}")) return;
      socket.destroy();
      resolve(text);
    });
    socket.on("close", () => resolve(text));
  });
}
