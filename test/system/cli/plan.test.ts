import { expect, it } from "vitest";
import { useCliUser } from "./cli-user.ts";

const { server, user } = await useCliUser();

const berth = async (...args: string[]) => await user.berth(["plan", ...args]);
const output = async (...args: string[]) => await user.output(["plan", ...args]);
const failure = async (...args: string[]) => await user.failure(["plan", ...args]);

it("[CL25] creates a plan, adds members, commits, rolls back, shows and deletes it", async () => {
  const [first, second] = [await server.create(), await server.create()];
  expect(await berth()).toMatchObject({ code: 0, stdout: "", stderr: "No plans.\n" });
  expect((await berth("create", "release")).stdout).toBe("Plan release has 0 sandboxes.\n");
  const added = await output("add", "release", "front", "--id", first);
  expect(added).toBe(`Member front of plan release is sandbox ${first}.\n`);
  expect((await berth("add", "release", "back", "--id", second)).code).toBe(0);
  expect((await berth()).stdout).toMatch(/^PLAN +AGE\nrelease +\d+s\n$/);
  await server.exec(first, "echo 1 > file");
  const committed = await berth("commit", "release");
  expect(committed).toMatchObject({ code: 0, stderr: "Commit 1: committed\n" });
  const table = `^MEMBER +SANDBOX +OUTCOME +CHANGES\n(?:.*\n)*front +${first} +committed +1 added, `;
  expect(committed.stdout).toMatch(new RegExp(table));
  const shown = await berth("show", "release", "--commit", "1");
  expect(shown.stdout).toMatch(/^Commit 1: committed\n(?:.*\n)*front {2}added {5}file\n/);
  await server.exec(first, "echo 2 > file");
  expect(await berth("rollback", "release")).toMatchObject({ code: 0 });
  expect((await server.exec(first, "cat file")).body.stdout).toBe("1\n");
  expect((await berth("show", "release")).stdout).toMatch(new RegExp(`^front +${first} +1$`, "m"));
  expect(await failure("commit", "release")).toMatch(/^error: /);
  const removed = await output("remove", "release", "back");
  expect(removed).toBe("Member back is removed from plan release.\n");
  expect(await output("delete", "release", "--stop")).toBe("Plan release is deleted.\n");
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
  const refused = await failure("delete", "held", "--stop");
  expect(refused).toMatch(
    /^error: The lease of the member b is held by somebody\. Nothing was changed/,
  );
  expect(refused).toContain("--force");
  expect((await berth("remove", "held", "b", "--stop")).code).toBe(1);
  expect(await berth("remove", "held", "b", "--stop", "--force")).toMatchObject({ code: 0 });
  expect(await berth("delete", "held", "--stop")).toMatchObject({ code: 0 });
  const unknown = await berth("show", "unknown");
  expect(unknown.stderr).toContain("hint: Run `berth plan` to list the plans, ");
  expect(await failure("show", "no/name")).toMatch(
    /^error: 'no\/name' is not a valid name of a plan\.\nhint: The name must be /,
  );
});
