import { Hono } from "hono";
import { describe, expect, it } from "vitest";
import type { ApiEnv } from "../../../src/worker/http/context.ts";
import { refuse } from "../../../src/worker/http/errors.ts";

async function told(thrown: unknown): Promise<{ status: number; error: Record<string, unknown> }> {
  const app = new Hono<ApiEnv>();
  app.get("/", (c) => {
    c.set("requestId", "request");
    return refuse(thrown, c);
  });
  const answer = await app.request("/");
  return {
    status: answer.status,
    ...((await answer.json()) as { error: Record<string, unknown> }),
  };
}

describe("what the runtime throws under an object", () => {
  it("[CA16] is told as an interruption of which nobody knows what it did: a restart, and storage that failed", async () => {
    const unknown = { code: "operation_interrupted", admitted: "unknown" };
    const restarted = Object.assign(new Error("it was reset"), { durableObjectReset: true });
    expect(await told(restarted)).toMatchObject({ status: 502, error: unknown });
    const full = new Error("internal error; reference = jvp1jil8bn90co0m77kh3t8i");
    expect(await told(full)).toMatchObject({ status: 502, error: unknown });
    const commit = new Error("database or disk is full: SQLITE_FULL");
    const noRoom = await told(Object.assign(commit, { durableObjectReset: true }));
    expect(noRoom).toMatchObject({ status: 502, error: { ...unknown, reason: "disk_full" } });
    const busy = Object.assign(new Error("too much"), { overloaded: true });
    expect(await told(busy)).toMatchObject({ status: 503, error: { code: "unavailable" } });
  });

  it("[CA16] and a fault of ours stays one, told without detail", async () => {
    const { status, error } = await told(new TypeError("internal error of ours; reference = x"));
    expect({ status, code: error.code }).toEqual({ status: 500, code: "internal" });
    expect(JSON.stringify(error)).not.toContain("reference");
  });
});
