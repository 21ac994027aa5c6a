/** Watches share one inotify instance of their agent, and do not notice each other. */
import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { until } from "../../until.ts";
import { Agent, binary } from "../agent.ts";
import { Files, read } from "./files.ts";
import { Follower } from "./follower.ts";

/** Starts an agent in a user namespace, whose users together may have so many inotify instances. */
async function startWithInstances(count: number): Promise<Agent> {
  const folder = mkdtempSync(join(tmpdir(), "berth-instances-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const program = join(folder, "agent");
  const limited = `echo ${count} > /proc/sys/user/max_inotify_instances && exec unshare --user --map-user=1000 -- ${binary} "$@"`;
  const script = `#!/bin/sh\nexec unshare --user --map-root-user -- sh -c '${limited}' agent "$@"\n`;
  writeFileSync(program, script);
  chmodSync(program, 0o755);
  return await Agent.start({ tree: "subreaper", program });
}

const watchOf = (agent: Agent, path: string) =>
  read(agent.request(`/v1/files/watch?path=${path}`), z.unknown());

describe("watches of one agent", () => {
  test("[I35] many watches need one inotify instance, and a watch that ends leaves the others", async () => {
    await using agent = await startWithInstances(1);
    const pathOf = (path: string) => join(agent.workspace, path);
    mkdirSync(pathOf("shared/below"), { recursive: true });
    const followers = [];
    for (const path of ["shared", "shared", "shared/below", "."]) {
      followers.push(await Follower.open(agent, path));
    }
    const [first, ...others] = followers;
    writeFileSync(pathOf("shared/below/a"), "");
    for (const follower of followers) {
      await until("each reports it", () => follower.view.has(pathOf("shared/below/a")));
    }
    first?.close();
    writeFileSync(pathOf("shared/below/b"), "");
    for (const follower of others) {
      await until("the others report it", () => follower.view.has(pathOf("shared/below/b")));
      follower.close();
    }
    // The last one has closed the instance, which the kernel gives back a moment later.
    let next: Follower | undefined;
    await until("an instance is free", async () => {
      next = await Follower.open(agent, "shared").catch(() => undefined);
      return next !== undefined;
    });
    writeFileSync(pathOf("shared/c"), "");
    await until("it is reported", () => next?.view.has(pathOf("shared/c")) === true);
    expect([...(next?.view.keys() ?? [])]).toEqual([pathOf("shared/c")]);
    next?.close();
  });

  test("[I35] a watch begins after what others have still to report", async () => {
    await using agent = await startWithInstances(1);
    const pathOf = (path: string) => join(agent.workspace, path);
    mkdirSync(pathOf("old/below"), { recursive: true });
    const first = await Follower.open(agent, ".");
    agent.process.kill("SIGSTOP");
    writeFileSync(pathOf("old/early"), "");
    renameSync(pathOf("old"), pathOf("new"));
    const opened = Follower.open(agent, "new");
    agent.process.kill("SIGCONT");
    const second = await opened;
    writeFileSync(pathOf("new/below/late"), "");
    for (const follower of [first, second]) {
      await until("it is reported", () => follower.view.has(pathOf("new/below/late")));
    }
    expect([...second.view.keys()]).toEqual([pathOf("new/below/late")]);
    expect(second.has("gone")).toBe(false);
    for (const follower of [first, second]) follower.close();
  });

  test("[I36] a watch that the kernel has no instance for is refused, and the message says what to raise", async () => {
    await using agent = await startWithInstances(0);
    const { status, error } = await watchOf(agent, ".");
    expect([status, error?.code]).toEqual([429, "too_many"]);
    expect(error?.hint).toContain("fs.inotify.max_user_instances");
  });
});

describe("folders that no watch covers", () => {
  const agent = Agent.forBlock({ tree: "subreaper" });
  const files = new Files(agent);

  test("[I36] a tree deeper than paths reach is refused by name; made later, it is an overflow and the watch continues", async () => {
    const make = "mkdir 'deep'; chdir 'deep'; for (1..3000) { mkdir 'd'; chdir 'd' }";
    expect((await agent.exec({ argv: ["perl", "-e", make] })).exitCode).toBe(0);
    const { status, error } = await watchOf(agent, "deep");
    expect([status, error?.code]).toEqual([400, "bad_request"]);
    expect(error?.message).toContain(join(agent.workspace, "deep"));
    await files.mkdir({ path: "later" });
    const follower = await Follower.open(agent, "later");
    renameSync(join(agent.workspace, "deep"), join(agent.workspace, "later/deep"));
    await until("it is reported", () => follower.has("overflow"));
    writeFileSync(join(agent.workspace, "later/after"), "");
    const after = join(agent.workspace, "later/after");
    await until("the watch continues", () => follower.view.has(after));
    follower.close();
    expect((await files.remove("later", { recursive: true })).status).toBe(200);
  });
});
