import { describe, expect, it } from "vitest";
import { call, createSandbox, json, pathOf } from "../calls.ts";

const path = (id: string) => pathOf(id, "/metadata");

describe("metadata over REST", () => {
  it("[N12] [Y21] carries its version as an entity tag in both directions", async () => {
    const id = await createSandbox({ metadata: { a: "1" } });
    const got = await call("GET", path(id));
    expect(got.headers.get("etag")).toBe('"1"');
    await got.text();
    const etag = got.headers.get("etag") ?? "";
    const patched = await call("PATCH", path(id), {
      body: { a: "2" },
      headers: { "if-match": etag },
    });
    expect([patched.status, patched.headers.get("etag")]).toEqual([200, '"2"']);
    await patched.text();
    const stale = await call("PATCH", path(id), {
      body: { a: "3" },
      headers: { "if-match": etag },
    });
    expect(stale.status).toBe(412);
    expect(await json(stale)).toMatchObject({ error: { code: "version_mismatch", version: 2 } });
    const same = await call("PATCH", path(id), { body: { a: "2" } });
    expect(same.headers.get("etag")).toBe('"2"');
    expect(await json(same)).toEqual({ metadata: { a: "2" }, version: 2 });
  });

  it("[N20] [Y21] is replaced only for a known version", async () => {
    const id = await createSandbox({ metadata: { a: "1" } });
    const bare = await call("PUT", path(id), { body: { b: "2" } });
    expect(bare.status).toBe(428);
    expect(await json(bare)).toMatchObject({ error: { code: "precondition_required" } });
    const put = await call("PUT", path(id), { body: { b: "2" }, headers: { "if-match": '"1"' } });
    expect([put.status, put.headers.get("etag")]).toEqual([200, '"2"']);
    expect(await json(put)).toEqual({ metadata: { b: "2" }, version: 2 });
  });
});
