/**
 * Owns what callers are promised of the events of a sandbox, and of tokens and connect tickets.
 */
import { describe, expect, it } from "vitest";
import type { EventData } from "../../../src/protocol/event.ts";
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

    it("[Y58] come as a stream too, which goes on after a number and says when there will be no more", async () => {
      const { id, box } = await made(world, { metadata: { a: "1" } });
      const first = streamed(await box.streamEvents());
      await box.patchMetadata({ a: "2" });
      const begun = await first.until(({ event }) => event.type === "metadata");
      expect(begun.map(({ seq }) => seq)).toEqual(begun.map((_event, at) => at + 1));
      const second = streamed(await box.streamEvents({ after: begun.length }));
      await box.destroy();
      const rest = await second.until(() => false);
      const all = (await box.events({ limit: 1000 })).events;
      expect([...begun, ...rest]).toEqual(all);
      expect(all.at(-1)?.event).toMatchObject({ type: "state", state: "destroyed" });
      // Whoever comes later is told the end at once.
      const late = streamed(await box.streamEvents({ after: all.length }));
      expect(await late.until(() => false)).toEqual([]);
      const bad = await refusal(box.streamEvents({ after: -1 }));
      expect(bad).toMatchObject({ code: "bad_request", facts: { field: "after" } });
      expect((await refusal(world.other.sandbox(id).streamEvents())).code).toBe("not_found");
    });

    it("[Y58] of all sandboxes of a tenant are one stream, and tell nobody else's", async () => {
      const { id } = await made(world, { start: false });
      const elsewhere = await world.other.create({ start: false });
      const all = streamed(await world.berth.streamEvents());
      await world.berth.sandbox(id).destroy();
      const told = await all.until(
        ({ sandbox, event }) =>
          sandbox === id && event.type === "state" && event.state === "destroyed",
      );
      expect(told.map(({ sandbox }) => sandbox)).not.toContain(elsewhere.id);
      const seqs = told.map(({ seq }) => seq);
      expect(seqs).toEqual([...new Set(seqs)].sort((one, other) => one - other));
      const last = streamed(await world.berth.streamEvents({ after: (seqs.at(-1) ?? 0) - 1 }));
      expect(await last.until(() => true)).toEqual(told.slice(-1));
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

type Told = { seq: number; sandbox?: string; event: EventData };

/** Reads a stream of events until one is met, or until it says that there are no more. */
function streamed(stream: AsyncIterable<Uint8Array>) {
  return {
    async until(isLast: (told: Told) => boolean): Promise<Told[]> {
      const seen: Told[] = [];
      const decoder = new TextDecoder();
      let text = "";
      for await (const piece of stream) {
        text += decoder.decode(piece, { stream: true });
        const messages = text.split("\n\n");
        text = messages.pop() ?? "";
        for (const message of messages) {
          if (message.startsWith("event: over\n")) return seen;
          if (!message.startsWith("id: ")) continue;
          const told = JSON.parse(message.slice(message.indexOf("data: ") + 6)) as Told;
          seen.push(told);
          if (isLast(told)) return seen;
        }
      }
      throw new Error(`the stream ended without a word, after ${seen.length} events`);
    },
  };
}
