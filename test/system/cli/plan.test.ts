import { expect, it } from "vitest";
import { useCliUser } from "./cli-user.ts";

const { server, user } = await useCliUser();

const berth = async (...args: string[]) => await user.berth(["plan", ...args]);

it("[CL25] creates a plan, adds members, commits, rolls back, shows and deletes it", async () => {
  const [first, second] = [await server.create(), await server.create()];
  expect(await berth()).toMatchObject({ code: 0, stdout: "", stderr: "No plans.\n" });
  expect((await berth("create", "release")).stdout).toBe("Plan release has 0 sandboxes.\n");
  expect((await berth("add", "release", "front", "--id", first)).stdout).toBe(
    `Member front of plan release is sandbox ${first}.\n`,
  );
  expect((await berth("add", "release", "back", "--id", second)).code).toBe(0);
  expect((await berth()).stdout).toMatch(/^PLAN +AGE\nrelease +\d+s\n$/);
  await server.exec(first, "echo 1 > file");
  const committed = await berth("commit", "release");
  expect(committed).toMatchObject({ code: 0, stderr: "Commit 1: committed\n" });
  expect(committed.stdout).toMatch(
    new RegExp(
      `^MEMBER +SANDBOX +OUTCOME +CHANGES\n(?:.*\n)*front +${first} +committed +1 added, `,
    ),
  );
  const shown = await berth("show", "release", "--commit", "1");
  expect(shown.stdout).toMatch(/^Commit 1: committed\n(?:.*\n)*front {2}added {5}file\n/);
  await server.exec(first, "echo 2 > file");
  expect(await berth("rollback", "release")).toMatchObject({ code: 0 });
  expect((await server.exec(first, "cat file")).body.stdout).toBe("1\n");
  expect((await berth("show", "release")).stdout).toMatch(new RegExp(`^front +${first} +1$`, "m"));
  const empty = await berth("commit", "release");
  expect(empty).toMatchObject({ code: 1 });
  expect(empty.stderr).toMatch(/^error: /);
  expect((await berth("remove", "release", "back")).stdout).toBe(
    "Member back is removed from plan release.\n",
  );
  expect((await berth("delete", "release", "--stop")).stdout).toBe("Plan release is deleted.\n");
  const { sandboxes } = await user.json<{ sandboxes: { id: string }[] }>(["list"]);
  expect(sandboxes.map(({ id }) => id)).toEqual([second]);
});

it("[CL25] an aborted commit names the holder, with --json too, and changes nothing", async () => {
  const [first, second] = [await server.create(), await server.create()];
  await berth("create", "held");
  await berth("add", "held", "a", "--id", first);
  await berth("add", "held", "b", "--id", second);
  for (const id of [first, second]) await server.exec(id, "echo 1 > file");
  const lease = { holder: "somebody", ttlMs: 300_000 };
  await server.call("POST", `/v1/sandboxes/${second}/lease`, lease);
  const ran = await user.berth(["plan", "commit", "held", "--json"]);
  expect(ran).toMatchObject({ code: 1, stderr: "" });
  const { error } = JSON.parse(ran.stdout) as { error: Record<string, unknown> };
  expect(error).toMatchObject({ code: "lease_held" });
  expect(JSON.stringify(error)).toContain("somebody");
  expect(await user.json(["plan", "show", "held"])).toMatchObject({
    plan: { members: [{ committed: null }, { committed: null }] },
  });
  // An aborted run shows its reason.
  const aborted = /^(?:.*\n)*Commit 1: aborted: .+\n/;
  expect((await berth("show", "held")).stderr).toMatch(aborted);
  expect((await berth("show", "held", "--commit", "1")).stdout).toMatch(aborted);
  const unknownCommit = await berth("show", "held", "--commit", "9");
  expect(unknownCommit.stderr).toContain("`berth plan show` to see one");
  const refused = await berth("delete", "held", "--stop");
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toMatch(
    /^error: The lease of the member b is held by somebody\. Nothing was changed/,
  );
  expect(refused.stderr).toContain("--force");
  expect((await berth("remove", "held", "b", "--stop")).code).toBe(1);
  expect(await berth("remove", "held", "b", "--stop", "--force")).toMatchObject({ code: 0 });
  expect(await berth("delete", "held", "--stop")).toMatchObject({ code: 0 });
  const unknown = await berth("show", "unknown");
  expect(unknown.stderr).toContain("hint: Run `berth plan` to list the plans, ");
  const bad = await berth("show", "no/name");
  expect(bad).toMatchObject({ code: 1, stdout: "" });
  expect(bad.stderr).toMatch(
    /^error: 'no\/name' is not a valid name of a plan\.\nhint: The name must be /,
  );
});
