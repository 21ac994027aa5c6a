/** Tests the commands about one sandbox that need nothing but a server. */
import { expect, it } from "vitest";
import { useCliUser } from "./cli-user.ts";

const { user, server } = await useCliUser();
const cwd = user.repo("verbs", "https://example.com/team/verbs.git");

it("[CL34] status, events, port, terminal and token show and change one sandbox", async () => {
  const { id } = await user.startSandbox(cwd);
  const status = await user.output(["status"], { cwd });
  expect(status).toMatch(new RegExp(`^Sandbox +${id}\nState +running for \\d+s\n`));
  expect(status).toMatch(/^Created +.* by user@example\.com$/m);
  expect(status).toMatch(/^Lease +Free$/m);
  expect(await user.json(["info"], { cwd })).toMatchObject({ sandbox: { id }, ports: [] });
  const events = await user.output(["events", "--last", "1000"], { cwd });
  expect(events).toMatch(/^\S+Z {2}state +state=running/m);
  await user.output(["open", "3000"], { cwd });
  expect(await user.output(["port"], { cwd })).toMatch(/^PORT +AGE +WAKES\n3000 +\d+s +no\n$/);
  expect(await user.output(["port", "close", "3000"], { cwd })).toBe("Port 3000 is closed.\n");
  expect((await user.berth(["port"], { cwd })).stderr).toBe("No port is open.\n");
  await server.call("POST", `/v1/sandboxes/${id}/terminals`, { id: "build" });
  expect(await user.output(["terminal"], { cwd })).toMatch(/^TERMINAL .*\nbuild /);
  const ended = await user.output(["terminal", "end", "build"], { cwd });
  expect(ended).toBe("Terminal build has ended.\n");
  const token = (
    await user.output(["token", "--right", "read", "--right", "lease", "--right", "exec"], { cwd })
  ).trim();
  const asToken = { cwd, env: { BERTH_KEY: token } };
  expect(await user.output(["exec", "--id", id, "--", "echo", "hi"], asToken)).toBe("hi\n");
  await user.output(["token", "revoke"], { cwd });
  expect(await user.failure(["exec", "--id", id, "--", "true"], asToken)).toMatch(/^error: /);
});

it("[CL35] checkpoint saves and restores; fork starts others; each is named", async () => {
  const { id } = await user.startSandbox(cwd);
  await user.berth(["exec", "--", "sh", "-c", "echo old > f.txt"], { cwd });
  const saved = await user.output(["checkpoint", "before"], { cwd });
  expect(saved).toMatch(new RegExp(`^Saved before, ${id}\\.\\w{12}`));
  expect(await user.output(["checkpoint", "list"], { cwd })).toContain(" before ");
  user.write(cwd, "f.txt", "newer\n");
  await user.berth(["exec", "--", "true"], { cwd });
  const restored = await user.output(["checkpoint", "restore", "before"], { cwd });
  expect(restored).toContain(`Sandbox ${id} has the files of before.`);
  // The next sync does not undo the restore silently.
  const ran = await user.berth(["exec", "--", "cat", "f.txt"], { cwd });
  expect(ran).toEqual({
    ...{ code: 0, signal: null, stdout: "newer\n" },
    stderr: "Only the sandbox had f.txt: kept. See `berth kept show 1`.\n",
  });
  expect(await user.output(["kept", "show", "1"], { cwd })).toContain("\n-newer\n+old\n");
  expect((await user.berth(["kept", "restore", "1"], { cwd })).stderr).toBe(
    "Changed here: f.txt\n",
  );
  const forks = (await user.output(["fork", "--from", "before", "--count", "2"], { cwd }))
    .trim()
    .split("\n");
  expect(new Set(forks).size).toBe(2);
  const there = await user.output(["exec", "--id", forks[0] ?? "", "--", "cat", "f.txt"], { cwd });
  expect(there).toBe("old\n");
  await user.json(["rm", "--yes", ...forks], { cwd });
  expect(await user.output(["gc", "--kept"], { cwd })).toMatch(/^\.git\/berth has /);
  expect((await user.berth(["kept"], { cwd })).stderr).toBe("Nothing is kept.\n");
  expect(await user.failure(["checkpoint", "restore", "nothing"], { cwd })).toMatch(
    /^error: The sandbox has no checkpoint `nothing`\.\nhint: /,
  );
});

it("[CL36] a command says which processes it left running, and reads no input with -n", async () => {
  const left = await user.berth(["exec", "--", "sh", "-c", "sleep 60 & echo up"], { cwd });
  expect(left).toEqual({
    ...{ code: 0, signal: null, stdout: "up\n" },
    stderr: "Ended 1 process that it left running. `berth run` starts what should stay.\n",
  });
  const loop = await user.berth(["exec", "-n", "--", "cat"], { cwd, input: "for the loop\n" });
  expect(loop).toMatchObject({ code: 0, stdout: "" });
});
