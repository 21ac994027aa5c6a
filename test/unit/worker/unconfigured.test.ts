/** What a deployment does before its secrets are set, and which addresses its ports have. */
import { describe, expect, it } from "vitest";
import type { Env } from "../../../src/config.ts";
import { createApp } from "../../../src/worker/app.ts";
import { portOf } from "../../../src/worker/ports/port-traffic.ts";

describe("an installation without secrets", () => {
  const ask = (path: string) => createApp().request(path, {}, {} as Env);

  it("[CF11] answers on / and /health, and says what to do", async () => {
    for (const path of ["/", "/health"]) {
      const response = await ask(path);
      expect(response.status).toBe(200);
      expect(await response.text()).toContain("npm run deploy");
    }
    expect(await (await ask("/health")).json()).toMatchObject({ status: "degraded" });
    const refused = await ask("/v1/sandboxes");
    expect(refused.status).toBe(500);
    expect(await refused.text()).toContain("BERTH_SECRET");
  });
});

describe("the addresses of ports", () => {
  const token = { token: "t".repeat(26), createdAt: new Date(0).toISOString() };
  const of = (berthUrl: string, domain?: string) =>
    portOf(berthUrl, `a${"0".repeat(23)}`, { port: 3000, wake: false }, token, domain);

  it("[CF12] have a host of their own below BERTH_PORTS_DOMAIN, and are paths where no such domain is", () => {
    const own = of("https://berth.example.org", "ports.example.org");
    expect(own.url).toMatch(/^https:\/\/3000-[^.]+\.ports\.example\.org\/$/);
    expect(of("https://berth.example.org").url).toContain(".berth.example.org/");
    for (const port of [of("https://berth.x.workers.dev"), of("https://berth.example.org", "")]) {
      expect(port.url).toBe(port.pathUrl);
      expect(port.url).toContain("/p/3000-");
    }
  });
});
