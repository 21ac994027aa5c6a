import { expect, it } from "vitest";
import { listAll } from "../../../src/cli/list-all.ts";
import { connect } from "../../../src/client/index.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { sharedServerOfFile } from "../shared-server.ts";

const server = await sharedServerOfFile();

it("[D28] a list of large sandboxes comes in pages of a mebibyte, and reading page by page gives all", async () => {
  const metadata = Object.fromEntries(
    Array.from({ length: 16 }, (_, n) => [`key${n}`, "x".repeat(1000)]),
  );
  const make = async () => {
    const { status, body } = await server.call("POST", "/v1/sandboxes", { start: false, metadata });
    expect(status).toBe(201);
    return String(body.id);
  };
  const made: string[] = [];
  for (let batch = 0; batch < 10; batch++) {
    made.push(...(await Promise.all(Array.from({ length: 8 }, make))));
  }
  const first = await server.call("GET", "/v1/sandboxes?limit=1000");
  expect(JSON.stringify(first.body).length).toBeLessThan(limits.sandboxesPageBytesMax * 1.1);
  expect(first.body.nextCursor).toEqual(expect.any(String));
  const berth = connect({ url: server.url, key: server.key });
  const all = (await listAll(berth, {})).map(({ id }) => id);
  expect([...all].sort()).toEqual([...made].sort());
});
