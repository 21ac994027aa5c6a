import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../until.ts";
import { Agent, fenced } from "../agent.ts";
import { expectNothingLeft, unfinished } from "../files/files.ts";
import { clone } from "./clones.ts";
import { type GitServer, git, makeRepository, serveGit } from "./git-server.ts";

const canary = { username: "someone", password: "canary/Pass+word~77" };

describe("clones of an agent", () => {
  const root = makeRepository();
  const bare = join(root, "repo.git");
  const agent = Agent.forBlock({ tree: "subreaper", env: { GIT_CONFIG_NOSYSTEM: "1" } });
  let open: GitServer;
  let closed: GitServer;
  beforeAll(async () => {
    open = await serveGit(root);
    closed = await serveGit(root, canary);
    await agent.sh("git config --global --add safe.directory '*'");
  });
  afterAll(async () => {
    expect(agent.left()).toEqual([]);
    await Promise.all([open.close(), closed.close()]);
    rmSync(root, { recursive: true });
  });
  expectNothingLeft(agent, () => clone(agent, { url: `file://${bare}`, dir: "warm" }));
  const inWorkspace = (...names: string[]) => join(agent.workspace, ...names);
  const head = (ref: string) => git(bare, "rev-parse", ref);

  test("[GC1] a repository is cloned over file and over http, and the result has its branch and commit", async () => {
    for (const [dir, url] of [
      ["by-file", `file://${bare}`],
      ["by-http", `${open.origin}/repo.git`],
    ] as const) {
      const outcome = await clone(agent, { url, dir });
      expect(outcome.error, JSON.stringify(outcome)).toBeUndefined();
      expect(outcome.done).toEqual({ dir: inWorkspace(dir), commit: head("main"), branch: "main" });
      expect(outcome.progress.length).toBeGreaterThan(0);
      expect(readFileSync(inWorkspace(dir, "file"), "utf8")).toBe("version 3\n");
      const { stdout } = await agent.sh(
        `cd ${dir}; git status --porcelain; git log --oneline | wc -l; stat -c %U:%a .`,
      );
      expect(stdout).toMatch(/^3\n\S+:755\n$/);
    }
  });

  test("[GC2] a branch or a tag can be chosen by name, with limited history", async () => {
    const url = `${open.origin}/repo.git`;
    const side = await clone(agent, { url, dir: "side", branch: "side", depth: 1 });
    expect(side.done).toEqual({ dir: inWorkspace("side"), commit: head("side"), branch: "side" });
    expect((await agent.sh("cd side; git log --oneline | wc -l")).stdout.trim()).toBe("1");
    const tag = await clone(agent, { url, dir: "tag", branch: "v1" });
    expect(tag.done).toEqual({ dir: inWorkspace("tag"), commit: head("v1"), branch: null });
  });

  test("[GC3] a failed clone returns git's own message and leaves nothing", async () => {
    const rows: [Record<string, unknown>, RegExp][] = [
      [{ url: `${open.origin}/repo.git`, branch: "absent" }, /absent not found/],
      [{ url: `${open.origin}/nothing.git` }, /nothing\.git.* not found/],
      [{ url: "file:///nonexistent/repo" }, /nonexistent/],
      [{ url: "http://127.0.0.1:1/repo" }, /onnect/],
      [{ url: `${closed.origin}/repo.git` }, /could not read Username/],
      [
        { url: `${closed.origin}/repo.git`, credentials: { ...canary, password: "wrong" } },
        /Authentication failed/,
      ],
    ];
    for (const [call, words] of rows) {
      const outcome = await clone(agent, { ...call, dir: "failed" });
      expect(outcome.error, JSON.stringify(outcome)).toMatchObject({ code: "clone_failed" });
      expect(outcome.error?.message).toMatch(words);
      expect(outcome.error?.message).not.toContain(".berth-");
      expect(existsSync(inWorkspace("failed"))).toBe(false);
    }
    expect(unfinished(agent)).toEqual([]);
  });

  test("[GC4] credentials reach the server and remain nowhere: in no argument, environment, setting, log or response", async () => {
    const url = `${closed.origin}/repo.git`;
    const encoded = encodeURIComponent(canary.password);
    const hidden = url.replace("://", `://${canary.username}:${encoded}@`);
    for (const [dir, call] of [
      ["with-credentials", { url, credentials: canary }],
      ["with-url", { url: hidden }],
    ] as const) {
      closed.hold();
      const work = clone(agent, { ...call, dir });
      await until("git waits for the server", () => closed.held() > 0);
      const seen = readdirSync("/proc")
        .filter((name) => /^\d+$/.test(name))
        .flatMap((pid) =>
          ["cmdline", "environ"].map((file) => [file, textOf(`/proc/${pid}/${file}`)]),
        );
      expect(seen.some(([, text]) => text?.includes("git\0clone\0"))).toBe(true);
      for (const [file, text] of seen) {
        expect(text?.includes(canary.password), file).toBe(false);
        if (file === "cmdline") expect(text?.includes(encoded)).toBe(false);
      }
      closed.release();
      const outcome = await work;
      expect(outcome.done?.commit, JSON.stringify(outcome)).toBe(head("main"));
      expect(JSON.stringify(outcome)).not.toContain(canary.password);
      const found = await agent.sh(
        `grep -rlaF -e "$C" -e "$E" -e "$B" ${dir} . /run /tmp/.git* 2>/dev/null; cd ${dir}; git config --list | grep -c credential; git config remote.origin.url; git reflog`,
        {
          env: {
            ...{ C: canary.password, E: encoded },
            B: Buffer.from(`${canary.username}:${canary.password}`).toString("base64"),
          },
        },
      );
      expect(found.stdout).toContain(`0\n${url}\n`);
      expect(found.stdout.startsWith("0\n"), found.stdout).toBe(true);
      expect(found.stdout).toContain(`clone: from ${url}`);
    }
    expect(closed.authorizations.some((header) => header !== undefined)).toBe(true);
    expect(agent.log).not.toContain(canary.password);
  });

  test("[GC4] a redirect to another origin is followed without them", async () => {
    const other = await serveGit(root, canary);
    open.redirectTo(other.origin);
    const own = open.authorizations.length;
    const url = `${open.origin}/repo.git`;
    const outcome = await clone(agent, { url, dir: "led", credentials: canary });
    open.redirectTo(undefined);
    expect(outcome.error?.code).toBe("clone_failed");
    expect(open.authorizations.length).toBeGreaterThan(own);
    expect(other.authorizations.length).toBeGreaterThan(0);
    expect(other.authorizations.filter(Boolean)).toEqual([]);
    await other.close();
  });

  test("[GC6] a folder with content is refused before anything happens; an empty one is filled", async () => {
    const url = `${open.origin}/repo.git`;
    await agent.sh("mkdir full hollow; echo mine > full/mine; echo file > plain");
    const requests = open.authorizations.length;
    for (const dir of ["full", ".", agent.workspace]) {
      const outcome = await clone(agent, { url, dir });
      const error = { code: "file_exists", field: "dir" };
      expect(outcome, dir).toMatchObject({ status: 409, error });
    }
    expect((await clone(agent, { url, dir: "plain" })).error?.code).toBe("not_a_folder");
    expect((await clone(agent, { url, dir: "no/where" })).error?.code).toBe("file_not_found");
    expect(open.authorizations.length).toBe(requests);
    const { ino } = statSync(inWorkspace("hollow"));
    expect((await clone(agent, { url, dir: "hollow" })).done?.dir).toBe(inWorkspace("hollow"));
    expect(statSync(inWorkspace("hollow")).ino).toBe(ino);
    const { stdout } = await agent.sh("cd hollow; git status --porcelain; ls -A");
    expect(stdout).toContain(".git\nfile\n");
    expect((await clone(agent, { url })).done?.dir).toBe(inWorkspace("repo"));
  });

  test("[GC7] addresses that git could misread, and credentials that do not fit them, are refused", async () => {
    const url = `${open.origin}/repo.git`;
    const requests = open.authorizations.length;
    const rows: [Record<string, unknown>, string][] = [
      [{ url: "-x@host:path" }, "url"],
      [{ url: "ssh://a:b@host/path" }, "url"],
      [{ url: "https://host/..", branch: "x" }, "dir"],
      [{ url, session: "nobody" }, "session"],
      [{ url, credentials: { username: "a", password: "b\nurl=x" } }, "credentials.password"],
      [{ url: url.replace("//", "//a:b@"), credentials: canary }, "credentials"],
      [{ url: "git@host:path", credentials: canary }, "credentials"],
    ];
    for (const [call, field] of rows) {
      const outcome = await clone(agent, call);
      const status = field === "session" ? 404 : 400;
      expect([outcome.status, outcome.error?.field], JSON.stringify(call)).toEqual([status, field]);
    }
    expect(open.authorizations.length).toBe(requests);
    const methods = await agent.request("/v1/git/clone");
    expect([methods.status, methods.headers.get("allow")]).toEqual([405, "POST"]);
    expect((await agent.request("/v1/git/other", { method: "POST" })).status).toBe(404);
  });

  test("[GC8] without git in the container the call is refused as unsupported", async () => {
    await using bare = await Agent.start({ tree: "subreaper", env: { PATH: "/nonexistent" } });
    const outcome = await clone(bare, { url: `${open.origin}/repo.git` });
    expect(outcome).toMatchObject({ status: 501, error: { code: "unsupported" } });
    expect(readdirSync(bare.workspace)).toEqual([]);
  });

  test("[GC5] a disconnect, a drain and a time limit end the tree and leave nothing", async () => {
    const url = `${open.origin}/repo.git`;
    const gitRuns = () => agent.left().length > 0;
    const ends: Record<string, (work: Promise<unknown>, caller: AbortController) => Promise<void>> =
      {
        async gone(work, caller) {
          caller.abort();
          await expect(work).rejects.toThrow();
        },
        async timeout(work) {
          expect(await work).toMatchObject({ error: { code: "clone_failed", timedOut: true } });
        },
        async drain(work) {
          expect(await agent.raiseFence(5, true)).toEqual({ fence: 5, left: 0 });
          expect(gitRuns()).toBe(false);
          const error = { code: "operation_interrupted", reason: "lease_lost" };
          expect(await work).toMatchObject({ error });
        },
      };
    for (const [dir, end] of Object.entries(ends)) {
      open.hold();
      const caller = new AbortController();
      const timeoutMs = dir === "timeout" ? 1000 : 60_000;
      const init = { signal: caller.signal, ...fenced(4) };
      const work = clone(agent, { url, dir, timeoutMs }, init);
      await until("git waits for the server", () => open.held() > 0 && gitRuns());
      const hidden = readdirSync(agent.workspace).filter((name) => name.startsWith(".berth-"));
      expect(hidden.length).toBe(1);
      await end(work, caller);
      await until("git has ended", () => !gitRuns() && unfinished(agent).length === 0);
      expect(existsSync(inWorkspace(dir))).toBe(false);
      open.release();
    }
    const late = await clone(agent, { url, dir: "late" }, fenced(4));
    expect(late).toMatchObject({ status: 409, error: { code: "stale_fence" } });
    expect((await clone(agent, { url, dir: "drain" }, fenced(5))).done).toBeDefined();
  });
});

function textOf(file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return "";
  }
}
