/** Files, archives and clones by the real agent in a real jail, with dropped capabilities and a system call filter. */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { agentHeaders } from "../../src/protocol/internal/agent.ts";
import { Archives, plain, types } from "../agent/archive/archives.ts";
import { archive } from "../agent/archive/tar-maker.ts";
import { codeOf, Files } from "../agent/files/files.ts";
import { attacks, isForeign } from "../agent/files/path-attacks.ts";
import { clone } from "../agent/git/clones.ts";
import { until } from "../until.ts";
import { identities, run, sharedEngine, type TestEngine } from "./test-engine.ts";

const MiB = 1024 * 1024;
const secretText = "words that no command may read";

/** Starts a jail and returns its agent in the form that the file helpers expect. */
async function startJail(engine: TestEngine) {
  const { id, container, started, secret, sh } = await run(engine);
  const request = (path: string, init: RequestInit = {}): Promise<Response> => {
    const headers = new Headers(init.headers);
    headers.set("authorization", `Bearer ${secret}`);
    headers.set(agentHeaders.incarnation, started.incarnation);
    headers.set(agentHeaders.fence, "1");
    const call = new Request(`${started.address}${path}`, { ...init, headers });
    // Node follows the signal of a request only while something references the request.
    return container.agent(started.address, call).finally(() => call);
  };
  const workspace = `${engine.data}/trees/${id}/workspace`;
  return { agent: { secret, request }, sh: (command: string) => sh(command, 60_000), workspace };
}

describe.each(identities())("files in a jail of an engine that is %s", (as) => {
  const engine = sharedEngine(as);
  let jail: Awaited<ReturnType<typeof startJail>>;
  let files: Files;
  let archives: Archives;

  beforeAll(async () => {
    jail = await startJail(engine);
    files = new Files(jail.agent);
    archives = new Archives(jail.agent);
  });
  const clear = () => jail.sh("cd /workspace && chmod -R u+rwx . ; find . -mindepth 1 -delete");

  it("[I22] files are written, read, listed, moved and removed, and are the command's own", async () => {
    await clear();
    const written = await files.put("a/b/file", "words", { mkdirs: true });
    expect(written.value).toMatchObject({ path: "/workspace/a/b/file", uid: 10001 });
    expect(await files.text("a/b/file")).toBe("words");
    expect((await jail.sh("stat -c %U a/b/file; echo more >> a/b/file; cat a/b/file")).stdout).toBe(
      "berth\nwordsmore\n",
    );
    expect((await files.move({ from: "a/b/file", to: "moved" })).value?.path).toBe(
      "/workspace/moved",
    );
    const listed = (await files.list(".", { depth: 9 })).value?.files.map(({ path }) => path);
    expect(listed).toEqual(["/workspace/a", "/workspace/a/b", "/workspace/moved"]);
    expect((await files.remove("a", { recursive: true })).value?.removed).toBe(2);
    expect((await files.mkdir({ path: "made" })).status).toBe(201);
  });

  it("[I22] [I5] a file that is being written has no name yet, and gets none if its caller disconnects", async () => {
    await clear();
    const caller = new AbortController();
    let pulled = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          pulled += 1;
          if (pulled <= 8) controller.enqueue(Buffer.alloc(MiB));
          else return new Promise(() => {});
        },
      },
      { highWaterMark: 0 },
    );
    const init = { duplex: "half", signal: caller.signal } as RequestInit;
    const sent = files.send("half", body, {}, init).catch(() => "cut");
    await until("most of it is taken", () => pulled > 8);
    expect(readdirSync(jail.workspace)).toEqual([]);
    caller.abort();
    expect(await sent).toBe("cut");
    expect((await jail.sh("ls -A /workspace")).stdout).toBe("");
  });

  it("[I22] no hostile path reaches anything by reading, writing or removing", async () => {
    await clear();
    const closed = "/workspace/closed";
    const isClosed = as === "root";
    if (isClosed) {
      mkdirSync(`${jail.workspace}/closed`);
      writeFileSync(`${jail.workspace}/closed/secret`, secretText, { mode: 0o600 });
      chmodSync(`${jail.workspace}/closed`, 0o700);
    }
    const made = await jail.sh(
      [
        "echo text > file; mkdir folder; mkfifo fifo; ln -s fifo to-fifo; ln -s loop loop",
        `ln -s ${closed} to-closed; ln -s ${closed}/secret to-secret; ln -s / to-root`,
        "ln -s /proc to-proc; ln -s file c0",
        "for i in $(seq 41); do ln -s c$((i-1)) c$i; done; ln -s c41 long-chain",
        `perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => "socket", Listen => 1)'`,
      ].join("; "),
    );
    expect(made).toMatchObject({ exitCode: 0, stderr: "" });
    expect(await files.text("to-root/workspace/file")).toBe("text\n");
    // The workspace path is short enough for the long attack path to fit.
    const runs = attacks
      .filter(([path]) => isClosed || !/@|secret|closed/.test(path))
      .filter(([path]) => !path.startsWith("./././"));
    expect(runs.length).toBeGreaterThanOrEqual(40);
    // Files that do not exist in a jail are not reached either.
    const away = ["file_forbidden", "file_not_found"];
    for (const [attack, codes] of runs) {
      const path = attack.replace("@", closed);
      const response = await files.get(path);
      const body = await response.clone().text();
      expect(body).not.toContain(secretText);
      expect(body).not.toContain(jail.agent.secret);
      expect([...codes, ...away], `${attack}: ${body}`).toContain(await codeOf(response));
      // In a jail these paths belong to the command, which may change them.
      const own = as === "root" ? /shadow$/ : /shadow$|^\/dev\//;
      if (!isForeign(attack) || attack === "/" || own.test(attack)) continue;
      const down = await archives.get(path);
      const text = await down.text();
      expect([down.status < 500, text.includes(secretText)], `${attack}: ${text}`).toEqual([
        true,
        false,
      ]);
      expect(down.status, attack).not.toBe(200);
      for (const result of [
        await files.put(path, "overwritten"),
        await archives.put(path, archive({ name: "made", body: "x" })),
        await files.remove(path, { recursive: true }),
      ]) {
        const { status, value } = result;
        expect({ status, value }, `${attack}: ${JSON.stringify(result)}`).toEqual({
          status: expect.toSatisfy((code) => code < 500),
          value: undefined,
        });
      }
    }
    if (isClosed) {
      expect(readFileSync(`${jail.workspace}/closed/secret`, "utf8")).toBe(secretText);
      spawnSync("rm", ["-r", `${jail.workspace}/closed`]);
    }
    expect((await jail.sh("echo still here")).stdout).toBe("still here\n");
  });

  it("[I22] a tree is downloaded and uploaded elsewhere in each format, and a repository is cloned", async () => {
    await clear();
    const make =
      "mkdir -p tree/deep/empty; cd tree; echo x > deep/x; ln deep/x hard; ln -s deep/x link; chmod 750 deep/x; touch -d '2001-02-03 04:05:06.123456789' deep/x deep .";
    expect((await jail.sh(make)).exitCode).toBe(0);
    const describeTree = (folder: string) =>
      jail.sh(`cd ${folder}; find . -printf '%p %y %m %T@ %l %n\\n' | sort; cat deep/x`);
    const before = (await describeTree("tree")).stdout;
    expect(before.split("\n").length).toBeGreaterThan(6);
    for (const type of types) {
      const bytes = await archives.bytes("tree", type);
      expect((await archives.put(`up-${type.slice(12)}`, bytes, type)).value).toEqual({
        entries: 6,
        bytes: 2,
      });
      expect((await describeTree(`up-${type.slice(12)}`)).stdout).toBe(before);
    }
    expect((await archives.put("x", archive({ name: "l", type: "2", says: "/etc" }))).code).toBe(
      "bad_archive",
    );
    const git =
      "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; git init -q -b main repo && cd repo && echo x > x && git add . && git commit -q -m x && git rev-parse HEAD";
    const commit = (await jail.sh(git)).stdout.trim();
    expect(commit).toMatch(/^[0-9a-f]{40}$/);
    const cloneResult = await clone(jail.agent, { url: "file:///workspace/repo", dir: "cloned" });
    expect(cloneResult.done, JSON.stringify(cloneResult)).toEqual({
      dir: "/workspace/cloned",
      commit,
      branch: "main",
    });
    expect((await jail.sh("cd cloned && git status --porcelain && cat x")).stdout).toBe("x\n");
    expect((await jail.sh("ls -A | grep berth-")).stdout).toBe("");
  });

  it("[I22] an archive fills the workspace itself, atomically if it is empty", async () => {
    await clear();
    const put = await archives.put(
      ".",
      archive({ name: "a/", type: "5", mode: 0o755 }, { name: "a/x", body: "x" }),
      plain,
    );
    expect(put.value, JSON.stringify(put)).toEqual({ entries: 2, bytes: 1 });
    expect((await jail.sh("ls -A . a; cat a/x")).stdout).toBe(".:\na\n\na:\nx\nx");
  });

  it("[I13] [I22] a file of 1 GiB is uploaded and downloaded, as a file and in an archive", async () => {
    await clear();
    const count = 1024;
    const chunk = Buffer.alloc(MiB, 7);
    const figures: string[] = [];
    const timed = async (what: string, work: () => Promise<number>) => {
      const startedAt = performance.now();
      const bytes = await work();
      const seconds = (performance.now() - startedAt) / 1000;
      figures.push(`${what} ${Math.round(bytes / seconds / 1e6)} MB/s`);
      return bytes;
    };
    const up = await timed("up", async () => {
      let sent = 0;
      const body = new ReadableStream<Uint8Array>(
        {
          pull(controller) {
            if (sent++ === count) controller.close();
            else controller.enqueue(chunk);
          },
        },
        { highWaterMark: 2 },
      );
      const put = await files.put("large", body, {}, { duplex: "half" } as RequestInit);
      return put.value?.size ?? 0;
    });
    expect(up).toBe(count * MiB);
    const read = async (response: Response) => {
      let bytes = 0;
      for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) {
        bytes += piece.length;
      }
      return bytes;
    };
    expect(await timed("down", async () => read(await files.get("large")))).toBe(count * MiB);
    const tar = await timed("down as tar", async () => read(await archives.get("large")));
    expect(tar).toBeGreaterThan(count * MiB);
    await files.remove("large");
    console.info(`1 GiB in a jail of an engine that is ${as}: ${figures.join(", ")}`);
  });
});
