/** Bodies and paths that hurt: deep, packed, slow, or leading elsewhere. */
import { gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { limits } from "../../src/protocol/limits.ts";
import { archive } from "../agent/tar-maker.ts";
import { Attacked } from "./attacked.ts";
import { raw } from "./sockets.ts";

const slowCallers = 8;

describe("a body or a path", () => {
  let berth: Attacked;
  let id: string;

  beforeAll(async () => {
    berth = await Attacked.start();
    id = await berth.create();
  });

  afterAll(async () => {
    expect(await berth.end()).toEqual([]);
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
        expect([path, answer.text.slice(0, 200), answer.status]).toEqual([
          path,
          expect.any(String),
          400,
        ]);
        expect(answer.body.error?.field).not.toBe(undefined);
      }
    }
    await unharmed();
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
      const path = of("/archive?path=unpacked");
      const answer = await berth.send({
        method: "PUT",
        path,
        body,
        headers: { "content-type": type },
      });
      expect(answer.body.error).toMatchObject({ code: "bad_archive" });
      expect(answer.status).toBe(400);
      expect(
        (await berth.exec(id, { command: "ls -A /workspace | grep -c unpacked" })).stdout,
      ).toBe("0\n");
    }
  });

  it("[SC12] no spelling of a path, and no link, leads a file call out of the sandbox", async () => {
    const key = `${berth.server.data}/key`;
    await berth.exec(id, {
      command: `ln -s ${key} link; ln -s / root; ln -s /proc/1/root jump; ln -s /proc/self/fd fds; ln -s loop loop`,
    });
    const up = "../".repeat(20);
    const spelled = [
      key,
      `${up}${key.slice(1)}`,
      `/workspace/${up}${key.slice(1)}`,
      "link",
      `root${key}`,
      `jump${key}`,
      `/proc/1/root${key}`,
      `/proc/self/root${key}`,
      `/proc/self/cwd/${up}${key.slice(1)}`,
      "/proc/1/environ",
      "/proc/self/environ",
      "/proc/1/mem",
      "/proc/1/fd/3",
      "fds/3",
      "/proc/kcore",
      "/dev/mem",
      "/etc/shadow",
      "/root/.ssh/id_rsa",
      "loop",
      "/dev/zero",
      "/proc/self/status",
    ];
    for (const path of spelled) {
      for (const part of ["/files", "/archive"]) {
        const asked = of(`${part}?path=${encodeURIComponent(path)}`);
        const { status, text } = await berth.send({ method: "GET", path: asked });
        expect([path, part, text.includes(berth.server.key), status < 500]).toEqual([
          path,
          part,
          false,
          true,
        ]);
        // A link of an archive is saved as a link.
        if (part === "/files")
          expect([path, status]).toEqual([path, status >= 400 ? status : "refused"]);
      }
      const headers = { "content-type": "text/plain" };
      const write = of(`/files?path=${encodeURIComponent(path)}`);
      const put = await berth.send({ method: "PUT", path: write, body: "overwritten", headers });
      expect(put.status).toBeLessThan(500);
    }
    const { status } = await berth.send({ method: "GET", path: of() });
    expect(status).toBe(200);
    expect((await berth.send({ method: "GET", path: of(), key: berth.server.key })).status).toBe(
      200,
    );
  });

  it("[SC11] callers that stop in the midst of a body are let go after their time, and hold nobody up meanwhile", async () => {
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
