import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type SharedServer, useSharedServer } from "../shared-server.ts";
import { Person } from "./cli-user.ts";

describe("plans at a shell", () => {
  let server: SharedServer;
  let person: Person;
  beforeAll(async () => {
    server = await useSharedServer();
    person = new Person(server);
  });
  afterAll(async () => {
    person[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
  });

  const berth = async (...args: string[]) => await person.berth(["plan", ...args]);

  it("[CL25] a plan is made, joined, committed, rolled back, shown and ended", async () => {
    const [one, two] = [await server.create(), await server.create()];
    expect(await berth()).toMatchObject({ code: 0, stdout: "", stderr: "no plans\n" });
    expect((await berth("create", "release")).stdout).toBe("plan release has 0 sandboxes\n");
    expect((await berth("add", "release", "front", "--id", one)).stdout).toBe(
      `front of release is sandbox ${one}\n`,
    );
    expect((await berth("add", "release", "back", "--id", two)).code).toBe(0);
    expect((await berth()).stdout).toMatch(/^PLAN +AGE\nrelease +\d+s\n$/);
    await server.exec(one, "echo 1 > file");
    const committed = await berth("commit", "release");
    expect(committed).toMatchObject({ code: 0, stderr: "commit 1: committed\n" });
    expect(committed.stdout).toMatch(
      new RegExp(
        `^MEMBER +SANDBOX +OUTCOME +CHANGES\n(?:.*\n)*front +${one} +committed +1 added, `,
      ),
    );
    const shown = await berth("show", "release", "--commit", "1");
    expect(shown.stdout).toMatch(/^commit 1: committed\n(?:.*\n)*front {2}added {5}file\n/);
    await server.exec(one, "echo 2 > file");
    expect(await berth("rollback", "release")).toMatchObject({ code: 0 });
    expect((await server.exec(one, "cat file")).body.stdout).toBe("1\n");
    expect((await berth("show", "release")).stdout).toMatch(new RegExp(`^front +${one} +1$`, "m"));
    const empty = await berth("commit", "release");
    expect(empty).toMatchObject({ code: 1 });
    expect(empty.stderr).toMatch(/^error: /);
    expect((await berth("remove", "release", "back")).stdout).toBe(
      "back is no longer in release\n",
    );
    expect((await berth("delete", "release", "--stop")).stdout).toBe("plan release is gone\n");
    const { sandboxes } = await person.json<{ sandboxes: { id: string }[] }>(["list"]);
    expect(sandboxes.map(({ id }) => id)).toEqual([two]);
  });

  it("[CL25] one that is given up says who kept it, as JSON too, and changes nothing", async () => {
    const [one, two] = [await server.create(), await server.create()];
    for (const [key, id] of [
      ["a", one],
      ["b", two],
    ] as const) {
      await berth("create", "held");
      await berth("add", "held", key, "--id", id);
      await server.exec(id, "echo 1 > file");
    }
    await server.call("POST", `/v1/sandboxes/${two}/lease`, { holder: "somebody", ttlMs: 300_000 });
    const ran = await person.berth(["plan", "commit", "held", "--json"]);
    expect(ran).toMatchObject({ code: 1, stderr: "" });
    const { error } = JSON.parse(ran.stdout) as { error: Record<string, unknown> };
    expect(error).toMatchObject({ code: "lease_held" });
    expect(JSON.stringify(error)).toContain("somebody");
    expect(await person.json(["plan", "show", "held"])).toMatchObject({
      plan: { members: [{ committed: null }, { committed: null }] },
    });
    // What came to nothing says why.
    const aborted = /^(?:.*\n)*commit 1: aborted: .+\n/;
    expect((await berth("show", "held")).stderr).toMatch(aborted);
    expect((await berth("show", "held", "--commit", "1")).stdout).toMatch(aborted);
    const noCommit = await berth("show", "held", "--commit", "9");
    expect(noCommit.stderr).toContain("`berth plan show` what is in one");
    const kept = await berth("delete", "held", "--stop");
    expect(kept).toMatchObject({ code: 1, stdout: "" });
    expect(kept.stderr).toMatch(
      /^error: The lease of the member b is held by somebody\. Nothing was changed/,
    );
    expect(kept.stderr).toContain("--force");
    expect((await berth("remove", "held", "b", "--stop")).code).toBe(1);
    expect(await berth("remove", "held", "b", "--stop", "--force")).toMatchObject({ code: 0 });
    expect(await berth("delete", "held", "--stop")).toMatchObject({ code: 0 });
    const unknown = await berth("show", "unknown");
    expect(unknown.stderr).toContain("hint: `berth plan` lists the plans, ");
    const bad = await berth("show", "no/name");
    expect(bad).toMatchObject({ code: 1, stdout: "" });
    expect(bad.stderr).toMatch(
      /^error: 'no\/name' cannot be the name of a plan\nhint: It must be /,
    );
  });
});
