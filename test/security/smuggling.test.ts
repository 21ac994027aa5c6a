/** Requests that two servers could read in two ways: what hides behind one is never carried out. */
import { beforeAll, describe, expect, it } from "vitest";
import { Attacked } from "./attacked-server.ts";
import { raw } from "./sockets.ts";

/** Longer than any machine takes to close what it refuses; who closes at once is not waited for. */
const closesWithinMs = 30_000;

describe("a request behind a request", () => {
  const berth = Attacked.shared();
  let id: string;

  beforeAll(async () => {
    id = await berth.create();
  });

  const of = (tail = "") => `/v1/sandboxes/${id}${tail}`;
  const head = (...lines: string[]) =>
    [`POST ${of("/touch")} HTTP/1.1`, `Host: ${berth.host}`, ...lines].join("\r\n");
  /** One that has a body, of which it makes nothing. */
  const patch = (...lines: string[]) => {
    const first = [`PATCH ${of("/metadata")} HTTP/1.1`, `Host: ${berth.host}`, authorized()];
    return [...first, "Content-Type: application/json", ...lines].join("\r\n");
  };
  const authorized = () => `Authorization: Bearer ${berth.server.key}`;
  /** What an attacker would have the server run behind the back of the one in front: it writes a row, and makes one. */
  const smuggled = (last = "") =>
    [
      `PATCH ${of("/metadata")} HTTP/1.1\r\nHost: ${berth.host}\r\n${authorized()}\r\nContent-Type: application/json\r\nContent-Length: 16\r\n\r\n{"smuggled":"1"}`,
      `POST /v1/sandboxes HTTP/1.1\r\nHost: ${berth.host}\r\n${authorized()}\r\nContent-Type: application/json\r\nContent-Length: 15\r\n${last}\r\n{"start":false}`,
    ].join("");
  /** All that the hidden requests would have changed. */
  const seen = async () => {
    const paths = ["/v1/sandboxes", of("/metadata"), of("/events?limit=1000")];
    const responses = paths.map((path) => berth.send({ method: "GET", path }));
    const [list, metadata, page] = (await Promise.all(responses)).map(({ text }) => text);
    const { sandboxes } = JSON.parse(list ?? "") as { sandboxes: { id: string }[] };
    const { events } = JSON.parse(page ?? "") as { events: { event: { type: string } }[] };
    return {
      sandboxes: sandboxes.map((sandbox) => sandbox.id),
      metadata,
      // Commands, which only `unharmed` runs, are reported up to a second after they ended.
      events: events.filter(({ event }) => event.type !== "exec"),
      objects: berth.objects(),
    };
  };
  const unharmed = async (before: Awaited<ReturnType<typeof seen>>) => {
    expect(await seen()).toEqual(before);
    expect(await berth.exec(id, { command: "echo on" })).toMatchObject({ stdout: "on\n" });
  };
  /** Everything that is answered until the server closes, which it must: nothing behind is read any more. */
  const answersTo = async (bytes: string) => {
    const { text, closed } = await raw(berth.server.url, bytes, closesWithinMs);
    return { statuses: [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map((match) => match[1]), closed };
  };

  it("[SC10] well-formed requests on one connection are all carried out: the attacks below differ from them in one thing", async () => {
    const before = await seen();
    const behind = smuggled("Connection: close\r\n");
    const bytes = `${head(authorized(), "Content-Length: 0")}\r\n\r\n${behind}`;
    const { statuses, closed } = await answersTo(bytes);
    expect([statuses, closed]).toEqual([Array(3).fill(expect.stringMatching(/^20[01]$/)), true]);
    const after = await seen();
    expect(after.sandboxes).toHaveLength(before.sandboxes.length + 1);
    expect(after.objects.length).toBeGreaterThan(before.objects.length);
    expect(after.metadata).toContain("smuggled");
    id = await berth.create();
    await unharmed(await seen());
  });

  it.each<[string, (size: number) => string[]]>([
    ["two lengths", (size) => ["Content-Length: 0", `Content-Length: ${size}`]],
    ["two lengths in one line", (size) => [`Content-Length: 0, ${size}`]],
    ["a length with a sign", (size) => [`Content-Length: +${size}`]],
    ["a negative length", () => ["Content-Length: -1"]],
    ["a length in hexadecimal", (size) => [`Content-Length: 0x${size.toString(16)}`]],
    ["a length beyond all numbers", () => ["Content-Length: 99999999999999999999"]],
    ["an unknown coding", () => ["Transfer-Encoding: xchunked"]],
    [
      "a coding that is none, and a length",
      (size) => ["Transfer-Encoding: identity", `Content-Length: ${size}`],
    ],
    ["a coding after another", () => ["Transfer-Encoding: chunked, identity"]],
    [
      "a coding with a space before its colon, and a length",
      () => ["Transfer-Encoding : chunked", "Content-Length: 0"],
    ],
    ["a space before the colon", (size) => [`Content-Length : ${size}`]],
    ["a folded line", (size) => ["X-Fold: a", ` Content-Length: ${size}`]],
    ["a NUL in a name", (size) => [`Content-Length\0: ${size}`]],
    ["a line without a colon", () => ["no colon here"]],
    ["a name of nothing", () => [": nothing"]],
  ])(
    "[SC10] %s: it is refused, and nothing behind it is taken for a request",
    async (_what, lines) => {
      const before = await seen();
      const behind = smuggled();
      const bytes = `${head(authorized(), ...lines(behind.length))}\r\n\r\n${behind}`;
      expect(await answersTo(bytes)).toEqual({ statuses: ["400"], closed: true });
      await unharmed(before);
    },
  );

  // The codings of a transfer win over a length, and the connection ends with the answer (RFC 9112, 6.1 and 6.3): a
  // server in front that reads it otherwise takes what is behind for a body, and here it is nothing at all.
  const chunked = "Transfer-Encoding: chunked";
  const thenBehind = (behind: string) => `2\r\n{}\r\n0\r\n\r\n${behind}`;
  const inOneChunk = (behind: string) => `${behind.length.toString(16)}\r\n${behind}\r\n0\r\n\r\n`;
  const lengthOf = (size: number) => `Content-Length: ${size + 5}`;
  it.each<[string, string | undefined, (size: number) => string[], (behind: string) => string]>([
    ["a length that covers all", "200", (size) => [lengthOf(size), chunked], thenBehind],
    ["the coding before the length", "200", (size) => [chunked, lengthOf(size)], thenBehind],
    [
      "the coding in capitals, behind a tab",
      "200",
      (size) => ["Transfer-Encoding:\tCHUNKED", lengthOf(size)],
      thenBehind,
    ],
    ["the coding twice", "200", (size) => [chunked, lengthOf(size), chunked], thenBehind],
    ["a length that ends before", "200", () => ["Content-Length: 5", chunked], thenBehind],
    ["no length, and no chunk", undefined, () => ["Content-Length: 0", chunked], (text) => text],
    ["no length, and one chunk", "400", () => ["Content-Length: 0", chunked], inOneChunk],
  ])(
    "[SC10] a chunked body that also tells a length is one request, and the last one: %s",
    async (_what, status, lines, bodyOf) => {
      const before = await seen();
      const behind = smuggled();
      const bytes = `${patch(...lines(behind.length))}\r\n\r\n${bodyOf(behind)}`;
      // Whatever a broken body is answered with, it is one answer.
      const statuses = [status ?? expect.any(String)];
      expect(await answersTo(bytes)).toEqual({ statuses, closed: true });
      await unharmed(before);
    },
  );

  it.each<[string, (behind: string) => string]>([
    ["a negative size", (behind) => `-1\r\n${behind}`],
    ["a size beyond all numbers", (behind) => `fffffffffffffffff\r\n${behind}`],
    ["a size with a prefix", (behind) => `0x10\r\n${behind}`],
    ["a size that is too small", (behind) => `1\r\n{}\r\n0\r\n\r\n${behind}`],
    ["no end of its chunk", (behind) => `2\r\n{}${behind}`],
    ["nothing but what is behind", (behind) => behind],
  ])("[SC10] chunks that lie hide no second request: %s", async (_what, bodyOf) => {
    const before = await seen();
    const bytes = `${patch("Transfer-Encoding: chunked")}\r\n\r\n${bodyOf(smuggled())}`;
    expect(await answersTo(bytes)).toEqual({ statuses: ["400"], closed: true });
    await unharmed(before);
  });

  it("[SC10] the body of a call that needs none is its body, and not the next call", async () => {
    const before = await seen();
    const behind = smuggled();
    const get = `GET ${of()} HTTP/1.1\r\nHost: ${berth.host}\r\n${authorized()}\r\nConnection: close\r\nContent-Length: ${behind.length}\r\n\r\n${behind}`;
    expect(await answersTo(get)).toEqual({ statuses: ["200"], closed: true });
    await unharmed(before);
  });
});
