import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import * as api from "../api.ts";

const { BERTH, NOBODY, OTHER } = env;

/** RPC returns thenables, not promises: each is awaited once, here. */
async function thrownBy(call: PromiseLike<unknown>): Promise<unknown> {
  try {
    await call;
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

describe("the entry for other Workers", () => {
  it("[W10] creates, uses and destroys a sandbox by methods, as REST does", async () => {
    const { id, state } = await BERTH.create({ waitMs: 10_000, env: { COLOUR: "blue" } });
    expect(state).toBe("running");
    const sandbox = BERTH.sandbox(id);
    expect(await sandbox.exec({ command: "printenv COLOUR" })).toMatchObject({
      exitCode: 0,
      stdout: "blue\n",
    });
    expect(await sandbox.get()).toEqual(await api.get(id));
    expect(await sandbox.destroy()).toMatchObject({ state: "destroyed" });
  });

  it("[W10] throws errors that keep their code, hint and facts", async () => {
    const { id } = await BERTH.create({});
    expect(await thrownBy(BERTH.sandbox(id).exec({ argv: [] }))).toMatchObject({
      code: "bad_request",
      facts: { field: "argv" },
    });
    expect(await thrownBy(BERTH.sandbox("nobody").get())).toMatchObject({ code: "not_found" });
    expect(await thrownBy(OTHER.sandbox(id).get())).toMatchObject({ code: "not_found" });
    await BERTH.sandbox(id).destroy();
    expect(await thrownBy(BERTH.sandbox(id).exec({ command: "true" }))).toMatchObject({
      code: "sandbox_destroyed",
      hint: expect.any(String),
    });
  });

  it("[W10] refuses a binding without a tenant, by method and by fetch", async () => {
    expect(await thrownBy(NOBODY.create({}))).toMatchObject({ code: "unauthenticated" });
    expect(await thrownBy(NOBODY.fetch("http://berth/v1/sandboxes"))).toMatchObject({
      code: "unauthenticated",
    });
    const { id } = await BERTH.create({});
    const got = await BERTH.fetch(`http://berth/v1/sandboxes/${id}`);
    expect(got.status).toBe(200);
  });
});
