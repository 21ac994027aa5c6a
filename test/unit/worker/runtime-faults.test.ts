import { Hono } from "hono";
import { describe, expect, it } from "vitest";
import type { ApiEnv } from "../../../src/worker/http/context.ts";
import { refuse } from "../../../src/worker/http/errors.ts";

async function responseTo(
  thrown: unknown,
): Promise<{ status: number; error: Record<string, unknown> }> {
  const app = new Hono<ApiEnv>();
  app.get("/", (c) => {
    c.set("requestId", "request");
    return refuse(thrown, c);
  });
  const response = await app.request("/");
  return {
    status: response.status,
    ...((await response.json()) as { error: Record<string, unknown> }),
  };
}

describe("what the runtime throws under an object", () => {
  it("[CA16] becomes an interruption with an unknown outcome: a restart, and failed storage", async () => {
    const unknown = { code: "operation_interrupted", admitted: "unknown" };
    const restarted = Object.assign(new Error("it was reset"), { durableObjectReset: true });
    expect(await responseTo(restarted)).toMatchObject({ status: 502, error: unknown });
    const full = new Error("internal error; reference = jvp1jil8bn90co0m77kh3t8i");
    expect(await responseTo(full)).toMatchObject({ status: 502, error: unknown });
    const commit = new Error("database or disk is full: SQLITE_FULL");
    const noRoom = await responseTo(Object.assign(commit, { durableObjectReset: true }));
    expect(noRoom).toMatchObject({ status: 502, error: { ...unknown, reason: "disk_full" } });
    const busy = Object.assign(new Error("too much"), { overloaded: true });
    expect(await responseTo(busy)).toMatchObject({ status: 503, error: { code: "unavailable" } });
  });

  it("[CA16] a bug stays an internal error, without details", async () => {
    const { status, error } = await responseTo(
      new TypeError("internal error of ours; reference = x"),
    );
    expect({ status, code: error.code }).toEqual({ status: 500, code: "internal" });
    expect(JSON.stringify(error)).not.toContain("reference");
  });
});
