import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countByState, listEvents, listPage } from "../../../src/objects/directory/list.ts";
import { selections } from "../../../src/objects/directory/select.ts";
import { type SandboxesQuery, sandboxesQuerySchema } from "../../../src/protocol/directory.ts";
import { stateNames } from "../../../src/protocol/fields/forms.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { DirectoryHarness } from "./harness.ts";

const repos = ["r1", "100%", "a'b"];
const branches = ["main", "%"];
const keys = ["a", "x/y"];
const values = ["1", "%", "k=v=", "ü '; --"];
const makers = ["one", "two"];

const sandboxes = fc.array(
  fc.record({
    state: fc.constantFrom(...stateNames),
    repo: fc.option(fc.constantFrom(...repos), { nil: undefined }),
    branch: fc.constantFrom(...branches),
    madeBy: fc.constantFrom(...makers),
    metadata: fc.dictionary(fc.constantFrom(...keys), fc.constantFrom(...values)),
    /** Many are created in the same moment. */
    createdAt: fc.integer({ min: 1_000, max: 1_005 }),
    /** It is listed with other values first, which change then. */
    changed: fc.boolean(),
  }),
  { minLength: 10, maxLength: 40 },
);

const queries = fc.record(
  {
    state: fc.array(fc.constantFrom(...stateNames), { minLength: 1, maxLength: 7 }),
    "scope.repo": fc.constantFrom(...repos),
    "scope.branch": fc.constantFrom(...branches),
    metadata: fc.array(
      fc.tuple(fc.constantFrom(...keys), fc.constantFrom(...values)).map((pair) => pair.join("=")),
      { maxLength: 2 },
    ),
    mine: fc.constantFrom("0" as const, "1" as const),
    limit: fc.integer({ min: 1, max: 7 }),
  },
  { requiredKeys: ["limit"] },
);

type GeneratedSandbox = (typeof sandboxes extends fc.Arbitrary<infer T> ? T : never)[number];
type Query = typeof queries extends fc.Arbitrary<infer T> ? T : never;

function reportSandbox(harness: DirectoryHarness, generated: GeneratedSandbox, id: string): void {
  const { state, repo, branch, madeBy, metadata, createdAt, changed } = generated;
  const report = (revision: number, shown: typeof metadata, now: typeof state) =>
    ({
      tenant: "local",
      revision,
      asOf: harness.now,
      view: {
        id,
        state: now,
        stateSince: new Date(harness.now).toISOString(),
        createdAt: new Date(createdAt).toISOString(),
        metadata: shown,
        madeBy,
        ...(repo === undefined ? {} : { scope: { repo, branch, config: "" } }),
      },
      events: [],
    }) as unknown as Parameters<typeof harness.directory.applyReport>[0];
  if (changed) harness.directory.applyReport(report(1, { a: "1", gone: "1" }, "running"));
  harness.directory.applyReport(report(2, metadata, state));
}

/** The expected ids, from all sandboxes by plain comparison. */
function expectedIds(all: (GeneratedSandbox & { id: string })[], query: Query): string[] {
  return all
    .filter((row) => query.state?.includes(row.state) ?? row.state !== "destroyed")
    .filter((row) => query["scope.repo"] === undefined || row.repo === query["scope.repo"])
    .filter(
      (row) =>
        query["scope.branch"] === undefined ||
        (row.repo !== undefined && row.branch === query["scope.branch"]),
    )
    .filter((row) => query.mine !== "1" || row.madeBy === "one")
    .filter((row) =>
      (query.metadata ?? []).every((pair) =>
        Object.entries(row.metadata).some(([k, v]) => `${k}=${v}` === pair),
      ),
    )
    .sort((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1))
    .map(({ id }) => id);
}

function read(harness: DirectoryHarness, { state, ...query }: Query): string[] {
  const seen: string[] = [];
  let cursor: string | null | undefined;
  do {
    const parsed = sandboxesQuerySchema.parse({
      ...query,
      ...(state === undefined ? {} : { state: state.join(",") }),
      ...(cursor === undefined ? {} : { cursor }),
    });
    const { sandboxes: shown, nextCursor } = listPage(harness, parsed, "one");
    expect(shown.length).toBeLessThanOrEqual(query.limit);
    seen.push(...shown.map(({ id }) => id));
    cursor = nextCursor;
  } while (cursor !== null);
  return seen;
}

describe("lists", () => {
  it("[D21] every filter shows page by page exactly the matching sandboxes, in order", () => {
    let shown = 0;
    fc.assert(
      fc.property(
        sandboxes,
        fc.array(queries, { minLength: 10, maxLength: 10 }),
        (generated, queries) => {
          const harness = new DirectoryHarness();
          const all = generated.map((row) => ({ ...row, id: harness.newId() }));
          for (const row of all) reportSandbox(harness, row, row.id);
          for (const query of queries) {
            const seen = read(harness, query);
            expect(seen).toEqual(expectedIds(all, query));
            shown += seen.length;
          }
          for (const state of stateNames) {
            const n = all.filter((row) => row.state === state).length;
            expect(countByState(harness).states[state] ?? 0).toBe(n);
          }
          expect(countByState(harness).total).toBe(expectedIds(all, { limit: 1 }).length);
          harness.rows.close();
        },
      ),
      { numRuns: 200 },
    );
    // Enough sandboxes matched for a list to miss one.
    expect(shown).toBeGreaterThan(800);
  });

  it("[D27] an ending sandbox is listed until it is destroyed, and counted as it is listed", async () => {
    const harness = new DirectoryHarness();
    const scope = "github.com/a/b";
    const { sandbox } = await harness.findOrCreate({ scope });
    const box = harness.box(sandbox.id);
    const list = (query: object) =>
      listPage(harness, sandboxesQuerySchema.parse(query), undefined).sandboxes.map(({ id }) => id);
    box.metadata = { a: "1" };
    for (const [state, shown] of [
      ["running", [box.id]],
      ["destroying", [box.id]],
      ["destroyed", []],
    ] as const) {
      box.reportAs(state);
      for (const query of [{}, { "scope.repo": scope }, { metadata: ["a=1"] }]) {
        expect(list(query), state).toEqual(shown);
        expect(list({ ...query, state }), state).toEqual([box.id]);
      }
      expect(countByState(harness)).toMatchObject({ total: shown.length, states: { [state]: 1 } });
    }
  });

  it("[D15] a sandbox that its object has forgotten is neither listed nor counted, even if no new ones are created", async () => {
    const harness = new DirectoryHarness();
    const forgotten: string[] = [];
    for (let n = 0; n < 6; n++) forgotten.push((await harness.findOrCreate()).sandbox.id);
    const { sandbox } = await harness.findOrCreate();
    const list = () =>
      listPage(harness, sandboxesQuerySchema.parse({ state: "destroyed" }), undefined);
    for (const id of forgotten) {
      harness.box(id).reportAs("destroyed");
    }
    await harness.pass(limits.tombstoneMs - 1);
    expect(list().sandboxes).toHaveLength(6);
    expect(countByState(harness).states.destroyed).toBe(6);
    await harness.pass(1);
    expect(list().sandboxes).toEqual([]);
    expect(countByState(harness)).toEqual({ states: { paused: 1 }, total: 1 });
    // Nor stored: each report deletes a few.
    for (let n = 0; n < 3; n++) {
      harness.box(sandbox.id).reportAs("running");
    }
    expect(harness.sql("SELECT id FROM sandbox")).toEqual([{ id: sandbox.id }]);
  });

  it("[D28] a page never exceeds the size of a response, however large its sandboxes are", async () => {
    const harness = new DirectoryHarness();
    const large = "\u00fc".repeat(limits.sandboxesPageBytesMax / 16);
    const made: string[] = [];
    for (let n = 0; n < 20; n++) {
      const { sandbox } = await harness.findOrCreate();
      const box = harness.box(sandbox.id);
      // In two states, so that a page merges the results of two queries.
      box.metadata = { large };
      box.become(n % 2 === 0 ? "running" : "paused");
      box.sendReport();
      made.unshift(sandbox.id);
    }
    const queries: Partial<SandboxesQuery>[] = [
      {},
      { state: ["running", "paused"] },
      { metadata: [`large=${large}`] },
    ];
    for (const query of queries) {
      const seen: string[] = [];
      let cursor: string | null | undefined;
      let pages = 0;
      do {
        const parsed = { ...sandboxesQuerySchema.parse({ limit: 1000 }), ...query };
        const shown = listPage(harness, cursor == null ? parsed : { ...parsed, cursor }, undefined);
        const bytes = new TextEncoder().encode(JSON.stringify(shown)).length;
        expect(bytes).toBeLessThan(limits.sandboxesPageBytesMax * 1.01);
        expect(bytes).toBeGreaterThan(limits.sandboxesPageBytesMax / 2);
        seen.push(...shown.sandboxes.map(({ id }) => id));
        cursor = shown.nextCursor;
        pages++;
      } while (cursor !== null);
      expect(seen).toEqual(made);
      expect(pages).toBe(3);
    }
  });

  it("[D22] no query sorts or scans all rows, neither for lists nor for finding, counting and due tasks", async () => {
    const harness = new DirectoryHarness();
    const plans = (query: string, ...bindings: (string | number | null)[]) =>
      harness.rows
        .prepare(`EXPLAIN QUERY PLAN ${query}`)
        .all(...bindings)
        .map(({ detail }) => String(detail));
    for (const query of [
      {},
      { limit: 1, cursor: `5.${harness.newId()}` },
      { state: "running" },
      { state: "running,paused,destroyed" },
      { "scope.repo": "r" },
      { "scope.repo": "r", state: "running,paused", mine: "1" },
      { mine: "1" },
      { metadata: ["a=1"] },
      { metadata: ["a=1", "b=2"], state: "running", cursor: `5.${harness.newId()}` },
    ]) {
      const parsed = sandboxesQuerySchema.parse(query);
      for (const { from, where, bindings } of selections(harness, parsed, "one")) {
        const plan = plans(`SELECT s.view FROM ${from} WHERE ${where}`, ...bindings, 101);
        expect(plan.length).toBeGreaterThan(0);
        for (const step of plan) expect(step).toMatch(/^SEARCH/);
      }
    }
    // The other queries of each call: none of them reads unnecessary rows.
    const ran: string[] = [];
    const sql = harness.sql.bind(harness);
    harness.sql = (query, ...bindings) => {
      ran.push(...plans(query, ...bindings).map((step) => `${step} of ${query}`));
      return sql(query, ...bindings);
    };
    await harness.findOrCreate({ scope: "r", key: "k" });
    await harness.findOrCreate({ scope: "r", onExisting: "replace" });
    harness.directory.probeStale();
    await harness.pass(1);
    await harness.ring();
    expect(ran.filter((step) => step.startsWith("SEARCH")).length).toBeGreaterThan(20);
    const bare = /^(SCAN|SEARCH (sandbox|s|meta|scope|keyed)( |$)(?!USING|EXISTS))/;
    expect(ran.filter((step) => bare.test(step))).toEqual([]);
  });
});

describe("events of all sandboxes", () => {
  it("[D23] each event appears once, in its sandbox's order, despite repeated and late reports and restarts", async () => {
    const harness = new DirectoryHarness();
    const { sandbox } = await harness.findOrCreate();
    const box = harness.box(sandbox.id);
    const event = (seq: number) => ({
      seq,
      at: new Date(harness.now).toISOString(),
      event: { type: "metadata", set: { n: String(seq) }, removed: [], version: seq } as never,
    });
    box.events = [event(1), event(2)];
    box.revision = 2;
    const late = box.report();
    box.sendReport();
    box.sendReport();
    harness.restart();
    box.events = [event(2), event(3), event(4)];
    box.revision = 3;
    box.sendReport();
    harness.directory.applyReport(late);
    // Events that do not fit in one report come with the next, even if nothing else has changed.
    box.events = [event(5)];
    box.sendReport();
    const page = listEvents(harness, { after: 0, limit: 100, follow: "0" });
    expect(page.events.map(({ event }) => ("set" in event ? event.set : {}))).toEqual(
      [1, 2, 3, 4, 5].map((n) => ({ n: String(n) })),
    );
    expect(page.gap).toBe(false);
  });

  it("[D23] a cursor above the newest event gets a gap and starts from the beginning", async () => {
    const harness = new DirectoryHarness();
    const { sandbox } = await harness.findOrCreate();
    const box = harness.box(sandbox.id);
    box.events = [
      {
        seq: 1,
        at: new Date(harness.now).toISOString(),
        event: { type: "state", state: "paused" },
      },
    ];
    box.revision = 2;
    box.sendReport();
    const page = listEvents(harness, { after: 5_000, limit: limits.eventsPageMax, follow: "1" });
    expect(page).toMatchObject({ gap: true, events: [{ seq: 1, sandbox: sandbox.id }] });
    expect(listEvents(harness, { after: 1, limit: 10, follow: "0" })).toMatchObject({
      gap: false,
      events: [],
    });
  });
});
