/**
 * Owns what callers are promised of the events of a sandbox, and of tokens and connect tickets.
 */
import { describe, expect, it } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { granted, made, refusal, saying, told, type World } from "./world.ts";

export function eventContract(world: World): void {
  describe("events", () => {
    saying(world, "evict")(
      "[Y6] tell everything in order, each once, with a number that only grows",
      async () => {
        const { id, box } = await made(world, { metadata: { a: "1" } });
        const { token } = granted(await box.acquireLease({ holder: "one" }));
        await world.evict(id);
        await box.patchMetadata({ a: "2" });
        await box.releaseLease(token);
        await world.evict(id);
        await box.pause();
        await box.start();
        const { events, gap, nextCursor } = await box.events();
        expect({ gap, nextCursor }).toEqual({ gap: false, nextCursor: null });
        expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, at) => at + 1));
        const times = events.map(({ at }) => Date.parse(at));
        expect(times).toEqual([...times].sort((one, other) => one - other));
        const words = events.map(({ event }) => {
          if (event.type === "state") return event.state;
          return event.type === "lease" ? event.what : event.type;
        });
        expect(words).toEqual([
          "starting",
          "running",
          "granted",
          "metadata",
          "ended",
          "pausing",
          "paused",
          "starting",
          "running",
        ]);
      },
    );

    it("[Y6] come by the page, and the pages leave nothing out", async () => {
      const { box } = await made(world);
      for (let n = 0; n < 5; n++) await box.patchMetadata({ n: String(n) });
      const all = (await box.events({ limit: 1000 })).events;
      expect(all.length).toBeGreaterThanOrEqual(7);
      const read = [];
      let after = 0;
      for (;;) {
        const page = await box.events({ after, limit: 2 });
        expect(page.events.length).toBeLessThanOrEqual(2);
        read.push(...page.events);
        if (page.nextCursor === null) break;
        after = Number(page.nextCursor);
      }
      expect(read).toEqual(all);
      expect(await box.events({ after: 1_000_000 })).toEqual({
        events: [],
        nextCursor: null,
        gap: false,
      });
    });

    saying(world, "fillEvents")(
      "[Y7] are kept to a bound; a reader who comes late is told of the gap",
      async () => {
        const { id, box } = await made(world);
        const changes = 20;
        await world.fillEvents(id, limits.eventsMax + 90);
        for (let n = 0; n < changes; n++) await box.patchMetadata({ n: String(n) });
        const late = await box.events({ limit: 1000 });
        expect(late.gap).toBe(true);
        const first = late.events[0]?.seq ?? 0;
        expect(first).toBeGreaterThan(1);
        const last = (await box.events({ after: first + 900, limit: 1000 })).events.at(-1);
        expect(last?.event).toMatchObject({ type: "metadata", version: changes });
        expect((last?.seq ?? 0) - first).toBeLessThan(limits.eventsMax + 100);
        expect((await box.events({ after: first - 1 })).gap).toBe(false);
        expect((await box.events({ after: first - 2 })).gap).toBe(true);
      },
    );

    it("[Y8] carry no secret: no token, no ticket, no environment", async () => {
      const { box } = await made(world, { env: { KEY: "a-secret-value" } });
      const ticket = "a-secret-ticket-of-mine";
      const lease = granted(await box.acquireLease({ ticket }));
      const token = await box.createToken({ rights: ["read"] });
      const connect = await box.createTicket();
      await box.exec({ command: "echo a-secret-command" }, { lease: lease.token });
      await box.breakLease("over");
      await box.revokeTokens();
      expect((await told(box, "tokens")).length).toBe(1);
      const text = JSON.stringify([await box.events(), await box.get(), await box.lease()]);
      for (const secret of [lease.token, token.token, connect.ticket, ticket, "a-secret"]) {
        expect(text).not.toContain(secret);
      }
    });
  });

  describe("tokens and connect tickets", () => {
    saying(world, "clock")(
      "[Y9] are given with what they are good for and until when",
      async () => {
        const { box } = await made(world);
        world.clock(Date.now());
        const token = await box.createToken({ rights: ["read", "exec"], ttlMs: 60_000 });
        expect(token).toMatchObject({ rights: ["read", "exec"] });
        expect(Date.parse(token.expiresAt)).toBe(Date.now() + 60_000);
        const ticket = await box.createTicket();
        expect(ticket.ticket.length).toBeGreaterThanOrEqual(32);
        expect(Date.parse(ticket.expiresAt)).toBe(Date.now() + limits.connectTicketMs);
        expect((await box.createTicket()).ticket).not.toBe(ticket.ticket);
      },
    );

    it("[Y9] are not for everybody to make", async () => {
      const { id } = await made(world);
      const leaser = await world.leaser(id);
      expect((await refusal(leaser.exec({ command: "true" }))).code).toBe("forbidden");
      expect((await refusal(leaser.patchMetadata({ a: "1" }))).code).toBe("forbidden");
      expect((await refusal(leaser.destroy())).code).toBe("forbidden");
      expect((await leaser.get()).state).toBe("running");
      granted(await leaser.acquireLease());
    });
  });
}
