/** The contract of ports: opening, listing, closing. Requests to them are not part of this interface. */
import { describe, expect, it } from "vitest";
import { createSandbox, eventsOfType, refusal, type World } from "./world.ts";

export function portContract(world: World): void {
  describe("ports", () => {
    it("[Y56] are opened with an address, listed without it, and closed idempotently", async () => {
      const { id, box } = await createSandbox(world, { start: false });
      expect(await box.ports()).toEqual({ ports: [], nextCursor: null });
      const web = await box.openPort({ port: 8000 });
      const api = await box.openPort({ port: 3000, wake: true });
      const label = `8000-${id}-${web.token}`;
      expect(web).toMatchObject({ port: 8000, wake: false });
      expect(new URL(web.url).hostname.startsWith(`${label}.`)).toBe(true);
      expect(new URL(web.pathUrl).pathname).toBe(`/p/${label}/`);
      const listed = await box.ports();
      expect(listed.ports).toEqual([
        { port: 3000, wake: true, createdAt: api.createdAt },
        { port: 8000, wake: false, createdAt: web.createdAt },
      ]);
      const reopened = await box.openPort({ port: 8000 });
      expect(reopened.token).not.toBe(web.token);
      await box.closePort(8000);
      await box.closePort(8000);
      expect((await box.ports()).ports.map(({ port }) => port)).toEqual([3000]);
      const events = (await eventsOfType(box, "port")).map(({ what, port }) => `${what} ${port}`);
      expect(events).toEqual(["opened 8000", "opened 3000", "opened 8000", "closed 8000"]);
      expect((await box.get()).state).toBe("paused");
    });

    it("[Y57] name the field of a bad call, need the right to open, and end with their sandbox", async () => {
      const { id, box } = await createSandbox(world, { start: false });
      const field = "port";
      const bad = { code: "bad_request", facts: { field } };
      expect(await refusal(box.openPort({ port: 0 }))).toMatchObject(bad);
      expect(await refusal(box.openPort({ port: 65_536 }))).toMatchObject(bad);
      expect(await refusal(box.closePort(0))).toMatchObject(bad);
      expect(await refusal(box.closePort(1.5))).toMatchObject(bad);
      const leaser = await world.leaser(id);
      expect((await refusal(leaser.openPort({ port: 8000 }))).code).toBe("forbidden");
      expect((await refusal(leaser.closePort(8000))).code).toBe("forbidden");
      expect((await leaser.ports()).ports).toEqual([]);
      const foreign = world.other.sandbox(id);
      expect((await refusal(foreign.openPort({ port: 8000 }))).code).toBe("not_found");
      await box.openPort({ port: 8000 });
      await box.destroy();
      expect((await refusal(box.openPort({ port: 8000 }))).code).toBe("sandbox_destroyed");
    });
  });
}
