/** Plans of real sandboxes, to the byte: what a failed commit leaves, and what a rollback brings back. */
import fc from "fast-check";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import type { BerthError } from "../../../src/protocol/errors.ts";
import type { Commit } from "../../../src/protocol/plan.ts";
import { until } from "../../until.ts";
import { Restarts } from "../file-server.ts";
import {
  applyChanges,
  pauseCopy,
  post,
  runPython,
  type TreeChange,
  treeChange,
  treeSnapshot,
} from "../files/workspace.ts";
import { isFull } from "../runs/runs.ts";
import { Fleet } from "./plan-fleet.ts";

const members = 8;
/** So many files take their copy long enough to be met in the middle. */
const ballast = `
import os
os.mkdir("/workspace/ballast")
for n in range(3000): open(f"/workspace/ballast/{n}", "w").close()
`;
const noBallast = `
import shutil
shutil.rmtree("/workspace/ballast", ignore_errors=True)
`;

const servers = new Restarts();
let server = await servers.start();
let fleet: Fleet;
let seed = 1;

afterEach(() => fleet.end());

afterAll(() => servers.stop(server));

/** Random work, and one file that was not there. */
async function work(index: number): Promise<void> {
  const [deeds = []] = fc.sample(fc.array(treeChange, { minLength: 20, maxLength: 40 }), {
    numRuns: 1,
    seed: seed++,
  });
  const path = Buffer.from(`/workspace/new ${seed}`).toString("hex");
  const last: TreeChange = ["write", path, seed % 256, 10];
  expect(await applyChanges(server, fleet.id(index), [...deeds, last])).toBeGreaterThan(0);
}

/** Folders that nobody has written to belong to the engine, which has restarted. */
function ofWorkspace(tree: string): string[] {
  const place = Buffer.from("/workspace").toString("hex");
  return tree.split("\n").filter((line) => line.startsWith(place));
}

/** How the k-th of them can keep a commit from being one; `over` when it does so no more. */
type Failing = { code: string; commit(): Promise<unknown>; over(): Promise<void> };
const ways: Record<string, (k: number) => Promise<Failing>> = {
  "is held by somebody who does not release it": async (k) => {
    const path = `/v1/sandboxes/${fleet.id(k)}/lease`;
    const held = await server.call("POST", path, { holder: "deploy", ttlMs: 300_000 });
    expect(held.status).toBe(201);
    return {
      code: "lease_held",
      commit: () => fleet.plan.commit({ waitMs: 100 }),
      over: async () => {
        const headers = { "berth-lease": String(held.body.token) };
        await server.call("DELETE", path, undefined, { headers });
      },
    };
  },
  "runs a command that does not end": async (k) => {
    const gate = "/tmp/gate";
    const running = server.exec(fleet.id(k), `mkfifo ${gate} && cat ${gate}`);
    await until("it runs", async () => {
      return (await server.exec(fleet.id(k), `test -p ${gate}`)).body.exitCode === 0;
    });
    return {
      code: "lease_held",
      commit: () => fleet.plan.commit({ waitMs: 100 }),
      over: async () => {
        await server.exec(fleet.id(k), `echo done > ${gate}; rm ${gate}`);
        expect((await running).body).toMatchObject({ exitCode: 0, stdout: "done\n" });
      },
    };
  },
  "cannot be saved by its engine": async (k) => {
    return {
      code: "internal",
      commit: async () => {
        const run = fleet.plan.commit();
        process.kill((await pauseCopy(server, fleet.id(k))).pid, "SIGKILL");
        return run;
      },
      over: async () => {},
    };
  },
  "is destroyed by force while it is saved": async (k) => {
    return {
      code: "sandbox_destroyed",
      commit: async () => {
        const run = fleet.plan.commit();
        const copy = await pauseCopy(server, fleet.id(k));
        const path = `/v1/sandboxes/${fleet.id(k)}`;
        const end = server.call("DELETE", `${path}?force=true`);
        await until("its end has begun", async () =>
          String((await server.call("GET", path)).body.state).startsWith("destroy"),
        );
        copy.resume();
        expect((await end).status).toBe(200);
        return run;
      },
      over: async () => {},
    };
  },
};

/** The code of an aborted run, from its result or its error. */
async function aborted(run: Promise<unknown>): Promise<{ code: string; n: number }> {
  try {
    const { outcome, error, commit } = (await run) as Commit;
    expect(outcome).toBe("aborted");
    return { code: String(error?.code), n: commit };
  } catch (error) {
    const { code, facts } = error as BerthError;
    return { code, n: Number(facts.commit) };
  }
}

/** The first, one in the middle and the last; `RUNS_FULL=1` takes all. */
const positions = isFull ? Array.from({ length: members }, (_, k) => k) : [0, 3, members - 1];

describe("a plan of eight real sandboxes", () => {
  it.each(Object.keys(ways))(
    "[PL100] a commit whose k-th of eight members %s leaves all trees as they were, to the byte; a rollback brings the last commit back",
    { timeout: 300_000 },
    async (way) => {
      fleet = await Fleet.of(server, `eight-${seed}`, members);
      for (let index = 0; index < members; index += 1) await work(index);
      let last = await fleet.committed();
      let base = await fleet.seen();
      for (const k of positions) {
        await work(k);
        await work((k + 3) % members);
        if (way.includes("saved")) await runPython(server, fleet.id(k), ballast);
        const before = await fleet.seen();
        expect(before[k]).not.toBe(base[k]);
        const failing = await ways[way]?.(k);
        if (failing === undefined) throw new Error(`there is no way ${way}`);
        const { code, n } = await aborted(failing.commit());
        expect(code).toBe(failing.code);
        await failing.over();
        const run = await fleet.plan.commitOf(n, { waitMs: 25_000 });
        expect(run).toMatchObject({
          outcome: "aborted",
          kind: "commit",
          error: { code: failing.code },
        });
        const isGone = code === "sandbox_destroyed";
        for (const [index, { key, id }] of fleet.members.entries()) {
          const part = run.members.find((member) => member.key === key);
          expect(part).toMatchObject({
            sandbox: id,
            outcome: isGone && index === k ? "failed" : "aborted",
            ...(index === k ? { error: { code: failing.code } } : {}),
          });
          if (!isGone || index !== k)
            expect(await treeSnapshot(server, id), key).toBe(before[index]);
        }
        if (isGone) {
          await replaced(k);
          last = await fleet.committed({ allowEmpty: true });
          base = await fleet.seen();
        } else await runPython(server, fleet.id(k), noBallast);
        const { members: now } = await fleet.plan.get();
        expect(new Set(now.map(({ committed }) => committed))).toEqual(new Set([last.commit]));
        await fleet.expectAtRest();
      }
      expect(await fleet.plan.rollback()).toMatchObject({ outcome: "rolled_back" });
      expect(await fleet.seen()).toEqual(base);
      await fleet.expectAtRest();
    },
  );

  it("[PL101] a commit lists what was added, modified and deleted in each member, also when it is read after a restart of the server", async () => {
    fleet = await Fleet.of(server, "named", 3);
    const setUp = `mkdir -p a/empty a/full; for n in 1 2 3; do echo $n > a/full/$n; done; ln -s full a/link`;
    for (const id of fleet.ids) expect((await server.exec(id, setUp)).body.exitCode).toBe(0);
    const first = await fleet.committed();
    for (const { changes } of first.members) {
      expect(changes).toEqual({
        added: ["a/empty/", "a/full/1", "a/full/2", "a/full/3", "a/link"],
        modified: [],
        deleted: [],
        counts: { added: 5, modified: 0, deleted: 0 },
        bytes: 6,
      });
    }
    const then = `echo 22 > a/full/2; rm a/full/3; rmdir a/empty; ln -sfn empty a/link; echo new > b; touch a/full/1`;
    expect((await server.exec(fleet.id(0), then)).body.exitCode).toBe(0);
    expect((await server.exec(fleet.id(1), "chmod 600 a/full/1")).body.exitCode).toBe(0);
    const two = await fleet.committed();
    const changesOf = ({ members }: Commit, index: number) =>
      members.find(({ sandbox }) => sandbox === fleet.id(index))?.changes;
    expect(changesOf(two, 0)).toMatchObject({
      added: ["b"],
      deleted: ["a/empty/", "a/full/3"],
      counts: { added: 1, deleted: 2 },
    });
    expect(changesOf(two, 0)?.modified).toEqual(expect.arrayContaining(["a/full/2", "a/link"]));
    expect(changesOf(two, 1)).toMatchObject({ modified: ["a/full/1"], added: [], deleted: [] });
    expect(changesOf(two, 2)?.counts).toEqual({ added: 0, modified: 0, deleted: 0 });
    const refused = await fleet.plan.commit().catch((error: BerthError) => error);
    expect(refused).toMatchObject({ code: "nothing_to_commit", facts: { commit: 3 } });
    const later = async () => [await fleet.plan.commitOf(1), await fleet.plan.commitOf(2)];
    expect(await later()).toEqual([first, two]);
    const trees = await fleet.seen();
    await servers.stop(server);
    server = await servers.start();
    fleet.server = server;
    expect(await later()).toEqual([first, two]);
    expect(await fleet.plan.commitOf(3)).toMatchObject({ outcome: "aborted" });
    for (const id of fleet.ids) await post(server, id, "start");
    expect((await fleet.seen()).map(ofWorkspace)).toEqual(trees.map(ofWorkspace));
    expect(await fleet.plan.rollback()).toMatchObject({ commit: 4, outcome: "rolled_back" });
    expect((await fleet.seen()).map(ofWorkspace)).toEqual(trees.map(ofWorkspace));
  });

  async function replaced(k: number): Promise<void> {
    const { key } = fleet.members[k] as { key: string };
    const id = await server.create();
    await fleet.plan.putMember(key, { sandboxId: id });
    fleet.members[k] = { key, id };
    fleet.members.sort((a, b) => (a.id < b.id ? -1 : 1));
  }
});
