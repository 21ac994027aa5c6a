/** Bodies that hurt: deep, broad, packed, or slow. */
import { gzipSync, zstdCompressSync } from "node:zlib";
import { beforeAll, describe, expect, it } from "vitest";
import { limits } from "../../src/protocol/limits.ts";
import { archive } from "../agent/archive/tar-maker.ts";
import { Attacked, put } from "./attacked-server.ts";
import { raw } from "./sockets.ts";

const slowCallers = 8;

describe("a body", () => {
  const berth = Attacked.shared();
  let id: string;

  beforeAll(async () => {
    id = await berth.create();
  });

  const of = (tail = "") => `/v1/sandboxes/${id}${tail}`;
  const authorized = () => `Authorization: Bearer ${berth.server.key}`;
  const unharmed = async () => {
    expect(await berth.exec(id, { command: "echo on" })).toMatchObject({ stdout: "on\n" });
  };

  it("[SC11] JSON of a million levels, and of a million names, is refused or read in time for others", async () => {
    const deep = Math.floor(limits.bodyBytesMax / 2) - 10;
    const names = Array.from({ length: 200_000 }, (_, n) => `"k${n}":1`).join(",");
    for (const body of [
      "[".repeat(deep) + "]".repeat(deep),
      `{"env":${'{"a":'.repeat(500_000)}1${"}".repeat(500_000)}}`,
      `{${names}}`,
      `{"metadata":{${names}}}`,
      `{"env":{${names}}}`,
      `{"argv":[${'"",'.repeat(1_000_000)}""]}`,
      `{"argv":[${"1,".repeat(1_000_000)}1]}`,
      `{"scope":{"repo":[${"[],".repeat(500_000)}[]]}}`,
    ]) {
      for (const path of ["/v1/sandboxes", of("/exec"), of("/metadata")]) {
        const method = path.endsWith("metadata") ? "PATCH" : "POST";
        const answer = await berth.send({ method, path, body });
        expect(answer.status, `${path}: ${answer.text.slice(0, 200)}`).toBe(400);
        expect(answer.body.error?.field).not.toBe(undefined);
      }
    }
    await unharmed();
  });

  it("[SC11] a body that is longer than it may be, or than it says, is refused however it is sent", async () => {
    const head = `PATCH ${of("/metadata")} HTTP/1.1\r\nHost: ${berth.host}\r\n${authorized()}\r\nContent-Type: application/json\r\nConnection: close`;
    const long = `{"a":"${"a".repeat(limits.bodyBytesMax)}"}`;
    const piece = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
    const half = long.length / 2;
    const pieces = `${piece(long.slice(0, half))}${piece(long.slice(half))}0\r\n\r\n`;
    const short = '{"a":"1"}';
    const before = await berth.ok("GET", of("/metadata"));
    for (const [bytes, status, code] of [
      [`${head}\r\nContent-Length: ${long.length}\r\n\r\n${long}`, 413, "too_large"],
      [`${head}\r\nTransfer-Encoding: chunked\r\n\r\n${pieces}`, 413, "too_large"],
      [`${head}\r\nContent-Length: 5\r\n\r\n${short}`, 400, "bad_json"],
    ] as const) {
      const answer = await raw(berth.server.url, bytes, 5_000);
      expect([answer.status, answer.text]).toEqual([status, expect.stringContaining(code)]);
    }
    expect(await berth.ok("GET", of("/metadata"))).toEqual(before);
    // The same, as it should be.
    const chunked = `${head}\r\nTransfer-Encoding: chunked\r\n\r\n${piece(short)}0\r\n\r\n`;
    expect((await raw(berth.server.url, chunked, 5_000)).status).toBe(200);
    await unharmed();
  });

  it("[W5] chunks without a byte are no body, and need no type; with one they do", async () => {
    const head = `Host: ${berth.host}\r\n${authorized()}\r\nConnection: close\r\nTransfer-Encoding: chunked`;
    const ask = async (line: string, chunks: string) => {
      const bytes = `${line} HTTP/1.1\r\n${head}\r\n\r\n${chunks}0\r\n\r\n`;
      return (await raw(berth.server.url, bytes, 5_000)).status;
    };
    for (const line of [`POST ${of("/touch")}`, `PATCH ${of("/metadata")}`]) {
      expect(await ask(line, ""), line).toBe(200);
      expect(await ask(line, "2\r\n{}\r\n"), line).toBe(415);
    }
    await unharmed();
  });

  it("[W5] of a field that is in a body twice the last one counts, and both count as one field", async () => {
    const path = of("/metadata");
    const twice = `{"twice":"first","twice":"last"}`;
    const { body } = await berth.send({ method: "PATCH", path, body: twice });
    expect(body.metadata).toMatchObject({ twice: "last" });
    const hidden = `{"twice":"${"a".repeat(limits.metadataValueBytesMax + 1)}","twice":"good"}`;
    const second = await berth.send({ method: "PATCH", path, body: hidden });
    expect(second.body.metadata).toMatchObject({ twice: "good" });
    const wrong = `{"twice":"good","twice":7}`;
    expect((await berth.send({ method: "PATCH", path, body: wrong })).status).toBe(400);
  });

  it("[SC11] an archive that unpacks to a thousand times its size is refused, and nothing of it stays", async () => {
    const size = 96 * 1024 * 1024;
    const tar = archive({ name: "bomb", body: Buffer.alloc(size) });
    const packed = {
      "application/gzip": gzipSync(tar, { level: 9 }),
      "application/zstd": zstdCompressSync(tar),
    };
    for (const [type, body] of Object.entries(packed)) {
      expect(body.length).toBeLessThan(size / 500);
      const answer = await berth.send(put(of("/archive?path=unpacked"), type, body));
      expect(answer.body.error).toMatchObject({ code: "bad_archive" });
      expect(answer.status).toBe(400);
      const { stdout } = await berth.exec(id, { command: "ls -A /workspace | grep -c unpacked" });
      expect(stdout).toBe("0\n");
    }
  });

  it("[SC11] connections that stop in the middle of a body are closed after their time, and delay nobody meanwhile", async () => {
    const begun = Date.now();
    const stuck = Array.from({ length: slowCallers }, () =>
      raw(
        berth.server.url,
        `POST ${of("/exec")} HTTP/1.1\r\nHost: ${berth.host}\r\n${authorized()}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`,
        300,
        limits.bodyReadMs + 20_000,
      ),
    );
    await unharmed();
    expect(Date.now() - begun).toBeLessThan(limits.bodyReadMs);
    for (const { status, text } of await Promise.all(stuck)) {
      expect(status).toBe(408);
      expect(text).toContain("body_timeout");
    }
  });
});
