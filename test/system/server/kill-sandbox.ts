/**
 * Records what callers of one sandbox were promised by the responses they got, and checks that a server keeps it after a
 * kill.
 */
import { expect } from "vitest";
import { until } from "../../until.ts";
import type { Server } from "../server.ts";

type Held = { name: string; token: string; fence: number; used: boolean; releasing: boolean };

const settled = ["running", "paused", "failed"];

export class KilledSandbox {
  readonly id: string;
  /** By key: the newest count that was acknowledged, and that was sent. Each key has one writer. */
  readonly counts = new Map<string, { acknowledged: number; sent: number }>();
  version = 0;
  fence = 0;
  held: Held | undefined;
  /** The last lease whose release was acknowledged. */
  released: { name: string; token: string } | undefined;
  breaks = 0;
  grants = 0;

  constructor(id: string) {
    this.id = id;
  }

  granted(name: string, body: Record<string, unknown>): Held {
    const fence = Number(body.fence);
    expect(fence, "a fence only grows").toBeGreaterThan(this.fence);
    if (this.breaks === 0) expect(this.held?.releasing ?? true, "at most one holder").toBe(true);
    this.fence = fence;
    this.grants += 1;
    this.held = { name, token: String(body.token), fence, used: false, releasing: false };
    return this.held;
  }

  wasReleased(held: Held): void {
    if (this.held === held) this.held = undefined;
    this.released = held;
  }

  /** After a restart: nothing that was acknowledged is undone, and the sandbox works. */
  async check(server: Server): Promise<void> {
    await this.#metadataStands(server);
    await this.#leaseStands(server);
    await this.#settles(server);
    this.held = undefined;
    this.breaks = 0;
  }

  async #metadataStands(server: Server): Promise<void> {
    const { body } = await server.call("GET", `${this.#path}/metadata`);
    expect(Number(body.version)).toBeGreaterThanOrEqual(this.version);
    this.version = Number(body.version);
    const map = body.metadata as Record<string, string>;
    for (const [key, count] of this.counts) {
      const kept = Number(map[key] ?? 0);
      expect(kept, `${key} was acknowledged`).toBeGreaterThanOrEqual(count.acknowledged);
      expect(kept, `${key} was sent`).toBeLessThanOrEqual(count.sent);
      count.acknowledged = kept;
    }
  }

  async #leaseStands(server: Server): Promise<void> {
    const path = `${this.#path}/lease`;
    const { body } = await server.call("GET", path);
    expect(Number(body.fence)).toBeGreaterThanOrEqual(this.fence);
    const { held, released } = this;
    if (held !== undefined && !held.releasing && this.breaks === 0) {
      const repeated = await server.call("POST", path, ticketOf(held.name));
      if (held.used) expect(body).toMatchObject({ state: "held", holder: held.name });
      const released = held.used ? [] : [410];
      expect([201, ...released]).toContain(repeated.status);
      if (repeated.status === 201) {
        expect(repeated.body).toMatchObject({ token: held.token, fence: held.fence });
      } else expect(repeated.body).toMatchObject({ error: { reason: "unused" } });
    }
    if (released !== undefined) {
      const repeated = await server.call("POST", path, ticketOf(released.name));
      expect(repeated.body).toMatchObject({ error: { code: "lease_lost", reason: "released" } });
    }
    await server.call("DELETE", `${path}?break=true&reason=the+next+round`);
    await until("the lease is free", async () => {
      const now = await server.call("GET", path);
      this.fence = Math.max(this.fence, Number(now.body.fence));
      return now.body.state === "free" && now.body.waiterCount === 0;
    });
  }

  async #settles(server: Server): Promise<void> {
    await until("the sandbox settles", async () => {
      const { body } = await server.call("GET", this.#path);
      return settled.includes(String(body.state));
    });
    expect((await server.call("POST", `${this.#path}/start`)).body).toMatchObject({
      state: "running",
    });
    const ran = await server.call("POST", `${this.#path}/exec`, { command: "cat kept" });
    expect(ran.body).toMatchObject({ exitCode: 0, stdout: "kept\n" });
  }

  get #path(): string {
    return `/v1/sandboxes/${this.id}`;
  }
}

export function ticketOf(name: string) {
  return { holder: name, ticket: name.padEnd(16, "_"), ttlMs: 300_000 };
}
