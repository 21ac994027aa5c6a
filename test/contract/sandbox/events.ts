/** The contract of events, tokens and connect tickets. */
import { describe, expect, it } from "vitest";
import type { EventData } from "../../../src/protocol/event.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { acquireLease, createSandbox, eventsOfType, itWith, refusal, type World } from "./world.ts";

export function eventContract(world: World): void {
  const itEvicting = itWith(world, "evict");
  describe("events", () => {
    itEvicting("[Y6] are complete and ordered, with a number that only grows", async () => {
      const { id, box } = await createSandbox(world, { metadata: { a: "1" } });
      const { token } = acquireLease(await box.acquireLease({ holder: "one" }));
      await world.evict(id);
      await box.patchMetadata({ a: "2" });
      await box.releaseLease(token);
      await world.evict(id);
      await box.pause();
      await box.start();
      const { events, gap, nextCursor } = await box.events();
      expect({ gap, nextCursor }).toEqual({ gap: false, nextCursor: null });
      expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, index) => index + 1));
      const times = events.map((event) => Date.parse(event.at));
      expect(times).toEqual([...times].sort((a, b) => a - b));
      // Where files end with their container, a pause saves them.
      const notSaved = events.filter(({ event }) => event.type !== "checkpoint");
      const words = notSaved.map(({ event }) => {
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
    });

    it("[Y6] come in pages that omit nothing", async () => {
      const { box } = await createSandbox(world);
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

    it("[Y58] are a stream too, which resumes after a number and says when it ends", async () => {
      const { id, box } = await createSandbox(world, { metadata: { a: "1" } });
      const first = streamed(await box.streamEvents());
      await box.patchMetadata({ a: "2" });
      const begun = await first.until(({ event }) => event.type === "metadata");
      expect(begun.map(({ seq }) => seq)).toEqual(begun.map((_event, index) => index + 1));
      const second = streamed(await box.streamEvents({ after: begun.length }));
      await box.destroy();
      const rest = await second.until(() => false);
      const all = (await box.events({ limit: 1000 })).events;
      expect([...begun, ...rest]).toEqual(all);
      expect(all.at(-1)?.event).toMatchObject({ type: "state", state: "destroyed" });
      // A later follower learns of the end at once.
      const late = streamed(await box.streamEvents({ after: all.length }));
      expect(await late.until(() => false)).toEqual([]);
      const bad = await refusal(box.streamEvents({ after: -1 }));
      expect(bad).toMatchObject({ code: "bad_request", facts: { field: "after" } });
      expect((await refusal(world.other.sandbox(id).streamEvents())).code).toBe("not_found");
    });

    it("[Y58] of all sandboxes of a tenant are one stream, without those of other tenants", async () => {
      const { id } = await createSandbox(world, { start: false });
      const elsewhere = await world.other.create({ start: false });
      const all = streamed(await world.berth.streamEvents());
      await world.berth.sandbox(id).destroy();
      const received = await all.until(
        ({ sandbox, event }) =>
          sandbox === id && event.type === "state" && event.state === "destroyed",
      );
      expect(received.map(({ sandbox }) => sandbox)).not.toContain(elsewhere.id);
      const seqs = received.map(({ seq }) => seq);
      expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
      const last = streamed(await world.berth.streamEvents({ after: (seqs.at(-1) ?? 0) - 1 }));
      expect(await last.until(() => true)).toEqual(received.slice(-1));
    });

    itWith(world, "fillEvents")(
      "[Y7] are kept up to a limit; a late reader learns of the gap",
      async () => {
        const { id, box } = await createSandbox(world);
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
      const { box } = await createSandbox(world, { env: { KEY: "a-secret-value" } });
      const ticket = "a-secret-ticket-of-mine";
      const lease = acquireLease(await box.acquireLease({ ticket }));
      const token = await box.createToken({ rights: ["read"] });
      const connect = await box.createTicket();
      await box.exec({ command: "echo a-secret-command" }, { lease: lease.token });
      await box.breakLease("over");
      await box.revokeTokens();
      expect((await eventsOfType(box, "tokens")).length).toBe(1);
      const text = JSON.stringify([await box.events(), await box.get(), await box.lease()]);
      for (const secret of [lease.token, token.token, connect.ticket, ticket, "a-secret"]) {
        expect(text).not.toContain(secret);
      }
    });
  });

  describe("tokens and connect tickets", () => {
    itWith(world, "clock")("[Y9] state their rights and their expiry", async () => {
      const { box } = await createSandbox(world);
      world.clock(Date.now());
      const token = await box.createToken({ rights: ["read", "exec"], ttlMs: 60_000 });
      expect(token).toMatchObject({ rights: ["read", "exec"] });
      expect(Date.parse(token.expiresAt)).toBe(Date.now() + 60_000);
      const ticket = await box.createTicket();
      expect(ticket.ticket.length).toBeGreaterThanOrEqual(32);
      expect(Date.parse(ticket.expiresAt)).toBe(Date.now() + limits.connectTicketMs);
      expect((await box.createTicket()).ticket).not.toBe(ticket.ticket);
    });

    it("[Y9] can be created only with the right to", async () => {
      const { id } = await createSandbox(world);
      const leaser = await world.leaser(id);
      expect((await refusal(leaser.exec({ command: "true" }))).code).toBe("forbidden");
      expect((await refusal(leaser.patchMetadata({ a: "1" }))).code).toBe("forbidden");
      expect((await refusal(leaser.destroy())).code).toBe("forbidden");
      expect((await leaser.get()).state).toBe("running");
      acquireLease(await leaser.acquireLease());
    });
  });
}

type StreamedEvent = { seq: number; sandbox?: string; event: EventData };

/** Reads a stream of events until one matches, or until the stream ends. */
function streamed(stream: AsyncIterable<Uint8Array>) {
  return {
    async until(isLast: (event: StreamedEvent) => boolean): Promise<StreamedEvent[]> {
      const seen: StreamedEvent[] = [];
      const decoder = new TextDecoder();
      let text = "";
      for await (const piece of stream) {
        text += decoder.decode(piece, { stream: true });
        const messages = text.split("\n\n");
        text = messages.pop() ?? "";
        for (const message of messages) {
          if (message.startsWith("event: over\n")) return seen;
          if (!message.startsWith("id: ")) continue;
          const event = JSON.parse(message.slice(message.indexOf("data: ") + 6)) as StreamedEvent;
          seen.push(event);
          if (isLast(event)) return seen;
        }
      }
      throw new Error(`the stream ended without a word, after ${seen.length} events`);
    },
  };
}
