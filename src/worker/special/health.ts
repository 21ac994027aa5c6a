/** `GET /health`: whether Berth works and how it isolates sandboxes. Touches no object. */
import type { Context } from "hono";
import { isConfigured, readConfig, unconfigured } from "../../config.ts";
import type { Health } from "../../protocol/health.ts";
import { engineHealth } from "../../runtime/engine.ts";
import type { ApiEnv } from "../http/context.ts";
import { version } from "../http/version.ts";

export async function health(c: Context<ApiEnv>): Promise<Response> {
  if (!isConfigured(c.env)) {
    const missing = [unconfigured];
    return c.json({ status: "degraded", version, engine: "platform", missing } satisfies Health);
  }
  const { engine } = readConfig(c.env);
  if (engine === undefined) {
    return c.json({ status: "ok", version, engine: "platform", missing: [] } satisfies Health);
  }
  try {
    const { isolation, missing, disk } = await engineHealth({
      baseUrl: engine.url,
      secret: engine.secret,
    });
    const { isFull, ...bytes } = disk;
    const found = { version, engine: "embedded", isolation, missing, disk: bytes } as const;
    if (!isFull) return c.json({ status: "ok", ...found } satisfies Health);
    const full = { status: "disk_full", ...found } as const;
    return c.json(full satisfies Health, 503, { "retry-after": "10" });
  } catch {
    const missing = ["The embedded engine does not answer: no sandbox can start until it does."];
    return c.json({ status: "degraded", version, engine: "embedded", missing } satisfies Health);
  }
}
