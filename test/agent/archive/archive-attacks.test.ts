import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, describe, expect, test } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { Agent } from "../agent.ts";
import { expectNothingLeft } from "../files/files.ts";
import { Archives, plain, streaming, treeOf } from "./archives.ts";
import { archive, end, type Made, member, record, zipped } from "./tar-maker.ts";

const MiB = 1024 * 1024;
const good: Made = { name: "good", body: "good" };
const sub: Made = { name: "sub/", type: "5", mode: 0o755 };
const link = (name: string, says: string): Made => ({ name, type: "2", says });
const hard = (name: string, says: string): Made => ({ name, type: "1", says });
const huge = `\x80${"\0".repeat(5)}\x7f${"\xff".repeat(5)}`;

/** What no archive may hold. `@` is a folder outside, with a file `kept`. */
const attacks: [what: string, ...members: Made[]][] = [
  ["an absolute member", { name: "/absolute" }],
  ["an absolute member outside", { name: "@/made" }],
  ["a member above", { name: "../made" }],
  ["a member above on the way", { name: "sub/../../made" }],
  ["a member that ends above", { name: "sub/.." }],
  ["dots behind dots", { name: "./.././made" }],
  ["a path of pax above", { name: "x", pax: { path: "../made" } }],
  ["an absolute path of pax", { name: "x", pax: { path: "/made" } }],
  ["a NUL in a path of pax", { name: "x", pax: { path: "ma\0de" } }],
  ["a name of 256 bytes", { name: "x", pax: { path: "n".repeat(256) } }],
  ["a path of 5,000 bytes", { name: "x", pax: { path: "n/".repeat(2500) } }],
  ["a file without a name", { name: "./", type: "0", pax: { path: "." } }],
  ["an absolute link", link("l", "@")],
  ["a link up from the top", link("l", "../made")],
  ["a link up twice from below", sub, link("sub/l", "../../made")],
  ["a link up after a name", link("l", "sub/../../made")],
  ["a link down and up", link("s", "."), link("l", "s/s/../..")],
  ["a link up from a folder that is none", link("s", "."), link("s/l", "..")],
  ["a link up from deep names that are none", link("s", "."), link("s/s/s/l", "../made")],
  ["a link that says nothing", link("l", "")],
  ["a long link of pax", { ...link("l", "x"), pax: { linkpath: "../made" } }],
  ["a hard link outside", hard("h", "@/kept")],
  ["a hard link above", hard("h", "../outside")],
  ["a hard link to nothing", hard("h", "nothing")],
  ["a hard link to a folder", sub, hard("h", "sub")],
  ["a hard link to a link", sub, link("sub/l", "../good"), hard("h", "sub/l")],
  ["a device of characters", { name: "d", type: "3" }],
  ["a device of blocks", { name: "d", type: "4" }],
  ["a pipe", { name: "p", type: "6" }],
  ["a sparse file of GNU", { name: "s", type: "S" }],
  ["a sparse file of pax", { name: "s", pax: { "GNU.sparse.major": "1" } }],
  ["a kind that nobody knows", { name: "v", type: "V" }],
  ["a file below a file", { name: "good/below" }],
  ["a file in the place of a folder that holds something", sub, { name: "sub/x" }, { name: "sub" }],
  ["a wrong checksum", { name: "x", checksum: 1 }],
  ["a negative size", { name: "x", size: "\xff".repeat(12) }],
  ["a size that is no number", { name: "x", size: "nonsense" }],
  ["more bytes than a file may have", { name: "x", size: huge }],
  ["more bytes by pax", { name: "x", pax: { size: String(limits.fileBytesMax + 1) } }],
  ["a header of many megabytes", { name: "x", type: "x", size: 64 * MiB }],
  ["a pax record without an end", { name: "x", type: "x", body: "99 path=x\n" }],
  ["a pax record without a length", { name: "x", type: "x", body: "path=x\n" }],
  ["a time that is no number", { name: "x", pax: { mtime: "soon" } }],
];

describe("attacks by archives on an agent", () => {
  const outside = mkdtempSync(join(tmpdir(), "berth-outside-"));
  const agent = Agent.forBlock({ tree: "subreaper" });
  const archives = new Archives(agent);
  expectNothingLeft(agent, async () => {
    writeFileSync(join(outside, "kept"), "kept");
    await agent.sh(`echo outside > outside; chmod 666 outside; mkdir full; echo mine > full/mine`);
    await archives.put("warm", zipped(good), "application/gzip");
  });
  afterAll(() => {
    expect(readdirSync(outside)).toEqual(["kept"]);
    rmSync(outside, { recursive: true });
  });
  const pathOf = (name: string) => join(agent.workspace, name);
  const meant = (members: Made[]) =>
    members.map((made) => ({
      ...made,
      name: (made.name ?? "").replace("@", outside),
      says: (made.says ?? "").replace("@", outside),
    }));

  test("[AR6] there are at least forty attacks, and their harmless parts are accepted", async () => {
    expect(attacks.length).toBeGreaterThanOrEqual(40);
    const links = [link("sub/l", "../good"), link("s", "."), hard("sub/h", "good")];
    const fine = archive(good, sub, ...links);
    const put = await archives.put("fine", fine);
    expect(put.value, JSON.stringify(put)).toEqual({ entries: 5, bytes: 4 });
    expect(readFileSync(pathOf("fine/s/s/sub/l"), "utf8")).toBe("good");
    expect((await archives.put("old", archive({ ...good, magic: "\0" }))).value?.entries).toBe(1);
  });

  test.each(attacks)(
    "[AR6] %s is refused with a reason, and leaves nothing",
    async (_what, ...members) => {
      const before = readdirSync(agent.workspace).sort();
      const put = await archives.put("attacked", archive(good, ...meant(members)));
      expect(put.code, JSON.stringify(put)).toBe("bad_archive");
      expect(put.error).toMatchObject({ entries: expect.any(Number), bytes: 4 });
      expect(put.error?.entries).toBeGreaterThanOrEqual(1);
      expect(readdirSync(agent.workspace).sort()).toEqual(before);
    },
  );

  test.each(attacks)(
    "[AR6] %s does no harm to a folder that holds something",
    async (_what, ...members) => {
      const put = await archives.put("full", archive(good, ...meant(members)));
      expect(put.code, JSON.stringify(put)).toBe("bad_archive");
      expect(readFileSync(pathOf("full/mine"), "utf8")).toBe("mine\n");
      expect(existsSync(pathOf("made"))).toBe(false);
      expect(readFileSync(join(outside, "kept"), "utf8")).toBe("kept");
      await agent.sh("rm -rf full; mkdir full; echo mine > full/mine");
    },
  );

  test("[AR6] existing links lead no member out", async () => {
    await agent.sh(
      `mkdir trap; ln -s ${outside} trap/out; ln -s .. trap/up; ln -s /proc/self trap/proc; ln -s mine trap/to-mine; echo x > trap/mine`,
    );
    for (const name of ["out/made", "up/made", "proc/made", "out/kept", "up/outside"]) {
      const put = await archives.put("trap", archive({ name, body: "harm" }));
      expect(put.code, JSON.stringify(put)).toBe("bad_archive");
    }
    expect((await archives.put("trap", archive(hard("h", "mine")))).code).toBe("bad_archive");
    const replaced = await archives.put("trap", archive({ name: "to-mine", body: "new" }));
    expect(replaced.status).toBe(200);
    expect(readFileSync(pathOf("trap/mine"), "utf8")).toBe("x\n");
    expect(readFileSync(pathOf("trap/to-mine"), "utf8")).toBe("new");
    expect(readFileSync(pathOf("outside"), "utf8")).toBe("outside\n");
  });

  test("[AR7] a body that ends too early, is not an archive or has another compression is refused", async () => {
    const complete = archive(good, { name: "large", body: "x".repeat(100_000) });
    const rows: [Buffer, string][] = [
      [Buffer.alloc(0), plain],
      [Buffer.from("no tar".repeat(200)), plain],
      [complete.subarray(0, 1024), plain],
      [complete.subarray(0, 50_000), plain],
      [complete.subarray(0, -1024), plain],
      [gzipSync(complete).subarray(0, 200), "application/gzip"],
      [complete, "application/gzip"],
      [complete, "application/zstd"],
      [gzipSync(complete), "application/zstd"],
    ];
    for (const [bytes, type] of rows) {
      const put = await archives.put("broken", Buffer.from(bytes), type);
      expect(put.code, `${type} ${bytes.length} ${JSON.stringify(put)}`).toBe("bad_archive");
      expect(existsSync(pathOf("broken"))).toBe(false);
    }
  });

  test("[AR8] a bomb of bytes is refused by its ratio, one of entries by their number, in flat memory", async () => {
    const before = agent.memoryKiB();
    const bomb = zipped({ name: "bomb", body: Buffer.alloc(64 * MiB) });
    expect(bomb.length).toBeLessThan(MiB);
    const put = await archives.put("bombed", bomb, "application/gzip");
    expect(put).toMatchObject({ status: 400, code: "bad_archive", error: { member: "bomb" } });
    expect(put.error?.message).toContain("200 times");
    const small = zipped({ name: "fine", body: Buffer.alloc(8 * MiB) });
    expect((await archives.put("not-bombed", small, "application/gzip")).status).toBe(200);
    const folders = Array.from({ length: 2048 }, () => member({ name: "./", type: "5" }));
    const many = Buffer.concat(folders);
    let left = Math.ceil(limits.archiveEntriesMax / 2048) + 1;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(left-- > 0 ? many : end);
        if (left < 0) controller.close();
      },
    });
    const crowd = await archives.put("bombed", body, plain, streaming);
    const error = { entries: limits.archiveEntriesMax };
    expect(crowd).toMatchObject({ code: "bad_archive", error });
    expect(existsSync(pathOf("bombed"))).toBe(false);
    expect(agent.memoryKiB() - before).toBeLessThan(96 * 1024);
  });

  test.each(["x", "g"])(
    "[AR8] an endless row of headers of kind %s, each with other records, passes with flat memory",
    async (type) => {
      const before = agent.memoryKiB();
      let peak = before;
      let left = 192;
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          peak = Math.max(peak, agent.memoryKiB());
          if (left-- > 0) controller.enqueue(manyRecords(type, left));
          else {
            controller.enqueue(archive(good));
            controller.close();
          }
        },
      });
      const put = await archives.put(`headers-${type}`, body, plain, streaming);
      expect(put.value).toEqual({ entries: 1, bytes: 4 });
      expect(peak - before).toBeLessThan(96 * 1024);
    },
  );

  test("[AR9] unknown records are ignored, and a header for all members counts", async () => {
    const global = member({ name: "g", type: "g", body: record("comment", "of a commit") });
    const xattr = { "SCHILY.xattr.user.x": "y".repeat(3000), comment: "=\n=" };
    const body = Buffer.concat([global, member({ name: "x", pax: xattr, body: "1" }), end]);
    const put = await archives.put("records", Buffer.from(body));
    expect(put.value).toEqual({ entries: 1, bytes: 1 });
    expect(treeOf(pathOf("records"), { times: false }).length).toBe(2);
  });
});

/** A header of almost the largest accepted size. */
function manyRecords(type: string, round: number): Buffer {
  const records = Array.from({ length: 1000 }, (_, n) =>
    record(`key-${round}-${n}`, "y".repeat(1000)),
  );
  return member({ name: "records", type, body: Buffer.concat(records) });
}
