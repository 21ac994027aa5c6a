import { expect, it } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { startSandbox } from "./harness.ts";

type Page = { events: { seq: number; event: { type: string } }[]; nextCursor: string | null };

it("[D28] a page of events ends early at its size, for a sandbox and for a tenant, and the next continues", async () => {
  const { local, sandbox } = await startSandbox();
  const changes = 80;
  for (let n = 0; n < changes; n++) {
    const large = Object.fromEntries(
      Array.from({ length: 15 }, (_, key) => [`${key}`, `${n}`.repeat(500)]),
    );
    await sandbox.patchMetadata(large);
  }
  const sources: ((after: number) => Promise<Page>)[] = [
    (after) => sandbox.events({ after, limit: 1000 }),
    (after) => local.events({ after, limit: 1000 }),
  ];
  for (const read of sources) {
    const seen: number[] = [];
    let pages = 0;
    for (let after = 0; ; pages++) {
      const page = await read(after);
      expect(JSON.stringify(page).length).toBeLessThan(limits.eventsPageBytesMax * 1.1);
      seen.push(
        ...page.events.filter(({ event }) => event.type === "metadata").map(({ seq }) => seq),
      );
      if (page.nextCursor === null) break;
      after = Number(page.nextCursor);
    }
    expect(pages).toBeGreaterThan(0);
    expect(seen).toHaveLength(changes);
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
  }
});
