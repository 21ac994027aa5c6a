import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { until } from "../../until.ts";
import { Agent } from "../agent.ts";
import { codeOf, expectNothingLeft, Files, queryOf } from "./files.ts";
import { Follower } from "./follower.ts";

describe("watches of an agent", () => {
  const agent = Agent.forBlock({ tree: "subreaper" });
  const files = new Files(agent);
  const untilClosed = expectNothingLeft(agent, () => files.stat("."));
  const pathOf = (path: string) => join(agent.workspace, path);

  test("[I30] changes are reported as they happen, one for each path, and a move as a removal and a creation", async () => {
    await files.mkdir({ path: "w/old", parents: true });
    const follower = await Follower.open(agent, "w");
    writeFileSync(pathOf("w/a"), "1");
    writeFileSync(pathOf("w/old/b"), "1");
    await until("both are reported", () => follower.view.size === 2);
    renameSync(pathOf("w/a"), pathOf("w/old/c"));
    await until("the move is reported", () => follower.view.has(pathOf("w/old/c")));
    expect([...follower.view.keys()].sort()).toEqual([pathOf("w/old/b"), pathOf("w/old/c")]);
    await files.put("w/put", "x");
    await until("the upload is reported", () => follower.view.has(pathOf("w/put")));
    expect(JSON.stringify(follower.events)).not.toContain(".berth-");
    follower.close();
  });

  test("[I31] changes in folders that are created later are never missed", async () => {
    await files.mkdir({ path: "late", parents: true });
    const follower = await Follower.open(agent, "late");
    const { exitCode } = await agent.sh(
      `cd late; for i in $(seq 40); do mkdir -p d$i/e/f && echo x > d$i/e/f/file && mv d$i m$i; done; rm -r m1 m2; mkdir m1; touch m1/again`,
    );
    expect(exitCode).toBe(0);
    const { stdout } = await agent.sh(`find late -mindepth 1 -printf '%y %p\\n' | sort`);
    const there = stdout.trim().split("\n").sort();
    expect(there.length).toBe(38 * 4 + 2);
    const lineOf = ([path, kind]: [string, string]) =>
      `${kind === "folder" ? "d" : "f"} ${path.slice(pathOf("").length + 1)}`;
    const reported = () => [...follower.view].map(lineOf).sort();
    const isTree = () => reported().join("\n") === there.join("\n");
    await until("the view is the tree", isTree).catch(() => expect(reported()).toEqual(there));
    follower.close();
  });

  test("[I32] a watch ends when its folder is removed, and covers only one level if the call says so", async () => {
    await files.mkdir({ path: "goes/below", parents: true });
    const flat = await Follower.open(agent, "goes", { recursive: "0" });
    const follower = await Follower.open(agent, "goes");
    writeFileSync(pathOf("goes/below/unseen"), "");
    writeFileSync(pathOf("goes/seen"), "");
    await until("it is reported", () => flat.view.has(pathOf("goes/seen")));
    await until("both are reported", () => follower.view.size === 2);
    expect([...flat.view.keys()]).toEqual([pathOf("goes/seen")]);
    rmSync(pathOf("goes"), { recursive: true });
    await until("both end", () => flat.ended && follower.ended);
    expect(follower.events.at(-1)?.name).toBe("gone");
    expect(flat.events.at(-1)?.name).toBe("gone");
  });

  test("[I33] more changes than are stored are reported as an overflow, and the watch continues", async () => {
    await files.mkdir({ path: "flood", parents: true });
    const follower = await Follower.open(agent, "flood");
    const held = Number(readFileSync("/proc/sys/fs/inotify/max_queued_events", "utf8"));
    // While the agent is stopped the kernel stores only so many events, and drops the rest.
    agent.process.kill("SIGSTOP");
    for (let n = 0; n <= held; n += 1) writeFileSync(pathOf(`flood/f${n}`), "");
    agent.process.kill("SIGCONT");
    await until("it is reported", () => follower.has("overflow"));
    await until("the watch continues", async () => {
      writeFileSync(pathOf("flood/after"), String(performance.now()));
      return follower.view.has(pathOf("flood/after"));
    });
    follower.close();
    await files.remove("flood", { recursive: true });
  });

  test("[I34] the number of watches is limited, and what is not a folder is refused", async () => {
    await files.mkdir({ path: "crowd", parents: true });
    const followers: Follower[] = [];
    await untilClosed();
    for (let n = 0; n < limits.fileWatchersMax; n += 1) {
      followers.push(await Follower.open(agent, "crowd"));
    }
    const refused = await agent.request("/v1/files/watch?path=crowd");
    expect([refused.status, await codeOf(refused)]).toEqual([429, "too_many"]);
    for (const follower of followers) follower.close();
    await until("one more is admitted", async () => {
      const path = "/v1/files/watch?path=crowd/../crowd&recursive=0";
      const signal = AbortSignal.timeout(1000);
      const next = await agent.request(path, { signal }).catch(() => undefined);
      await next?.body?.cancel();
      return next?.status === 200;
    });
    await files.put("plain", "");
    const codes = { plain: "not_a_folder", nothing: "file_not_found", "/proc": "file_forbidden" };
    for (const [path, code] of Object.entries(codes)) {
      const response = await agent.request(`/v1/files/watch?${queryOf({ path })}`);
      expect(await codeOf(response), path).toBe(code);
    }
  });
});
