import {
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { errorBodySchema } from "../../../src/protocol/errors.ts";
import {
  agentMetadataSchema,
  agentMetadataStoredSchema,
} from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import {
  exec,
  identities,
  newData,
  newId,
  newStart,
  removeData,
  startEngine,
  type TestEngine,
  tracesOf,
} from "../../engine/test-engine.ts";
import { until } from "../../until.ts";
import { Agent, isRoot, kinds, newRun } from "../agent.ts";

const initialCopy = { version: 0, metadata: {} };
/** For an agent that shares its user with its commands. */
const sharedUser = isRoot ? { ownUid: 12_345 } : {};

const put = (agent: Agent, body: unknown) =>
  agent.request("/v1/metadata", { method: "PUT", body: JSON.stringify(body) });

async function update(agent: Agent, version: number, metadata: Record<string, string>) {
  const response = await put(agent, { version, metadata });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return agentMetadataStoredSchema.parse(JSON.parse(text)).version;
}

const folderOf = (agent: Agent) => join(agent.run, "berth");
const fileOf = (agent: Agent) => join(folderOf(agent), "metadata.json");

/** As a command sees it. */
async function read(agent: Agent): Promise<unknown> {
  const { stdout, stderr } = await agent.sh(`cat ${fileOf(agent)}`);
  expect(stderr).toBe("");
  return agentMetadataSchema.parse(JSON.parse(stdout));
}

describe.each(kinds)("the copy of the metadata, process trees in a %s", (tree) => {
  const agent = Agent.forBlock({ tree });
  /** Each test continues at the version of the test before. */
  let version = 0;
  afterAll(() => expect(readdirSync(folderOf(agent))).toEqual(["metadata.json"]));

  test("[X45] the first command finds the copy, empty and at version 0 until the first update", async () => {
    expect(await read(agent)).toEqual(initialCopy);
    version += 1;
    expect(await update(agent, version, { owner: "ci" })).toBe(version);
    expect(await read(agent)).toEqual({ version, metadata: { owner: "ci" } });
  });

  test("[X45] what an earlier incarnation or an image left there is replaced, and no link is followed", async () => {
    const run = newRun();
    const elsewhere = mkdtempSync(join(tmpdir(), "berth-elsewhere-"));
    writeFileSync(join(elsewhere, "metadata.json"), "another file");
    symlinkSync(elsewhere, join(run, "berth"));
    await using linked = await Agent.start({ tree, run });
    expect(await read(linked)).toEqual(initialCopy);
    expect(await update(linked, 9, { old: "yes" })).toBe(9);
    linked.process.kill("SIGTERM");
    await until("it has ended", () => linked.process.exitCode === 0);
    expect(readFileSync(fileOf(linked), "utf8")).toContain('"version":9');
    await using next = await Agent.start({ tree, run });
    expect(await read(next)).toEqual(initialCopy);
    expect(await update(next, 1, { new: "yes" })).toBe(1);
    expect(readFileSync(join(elsewhere, "metadata.json"), "utf8")).toBe("another file");
    await next.stop();
    for (const folder of [elsewhere, linked.workspace]) rmSync(folder, { recursive: true });
  });

  test("[X46] a reader sees complete copies only, in the order of the updates", async () => {
    const [first, last] = [version + 1, version + 300];
    version = last;
    const file = fileOf(agent);
    const reading = agent.sh(
      `touch reading; until grep -q '"version":${last},' ${file}; do cat ${file}; done; cat ${file}`,
      { maxOutputBytes: limits.execOutputMaxBytes },
    );
    // Needs no process per check, so it notices the shortest moment without a file.
    const checking = agent.sh(
      `touch checking; until [ -e enough ]; do [ -e ${file} ] || echo missing; done; echo checked`,
    );
    const marks = ["reading", "checking"].map((name) => `${agent.workspace}/${name}`);
    await until("both run", () => marks.every((mark) => existsSync(mark)));
    for (let n = first; n <= last; n += 1) {
      const keys = Array.from({ length: 12 }, (_, key) => [`k${key}`, `${n}.`.padEnd(1000, "x")]);
      expect(await update(agent, n, Object.fromEntries(keys))).toBe(n);
    }
    writeFileSync(`${agent.workspace}/enough`, "");
    expect((await checking).stdout).toBe("checked\n");
    const { stdout, ...rest } = await reading;
    expect(rest).toMatchObject({ stderr: "", truncated: false, exitCode: 0 });
    const copies = stdout
      .trim()
      .split("\n")
      .map((line) => agentMetadataSchema.parse(JSON.parse(line)))
      .filter((copy) => copy.version >= first);
    const versions = copies.map((copy) => copy.version);
    expect(new Set(versions).size).toBeGreaterThan(2);
    expect(versions).toEqual([...versions].sort((a, b) => a - b));
    for (const copy of copies) {
      const values = Object.values(copy.metadata);
      expect(values.length).toBe(12);
      expect(values.every((value) => value.startsWith(`${copy.version}.x`))).toBe(true);
    }
  });

  test("[X46] a copy that is being read stays unchanged to its end", async () => {
    version += 2;
    const [old, value] = [version - 1, "o".repeat(1000)];
    expect(await update(agent, old, { value })).toBe(old);
    const fd = openSync(fileOf(agent), "r");
    const half = Buffer.alloc(500);
    expect(readSync(fd, half)).toBe(500);
    expect(await update(agent, version, { value: "n".repeat(700) })).toBe(version);
    const contents = `${half}${readFileSync(fd)}`;
    closeSync(fd);
    expect(JSON.parse(contents)).toEqual({ version: old, metadata: { value } });
    expect(await read(agent)).toEqual({ version, metadata: { value: "n".repeat(700) } });
  });

  test("[X46] keys and values arrive unchanged, up to the largest metadata", async () => {
    version += 1;
    const odd = { "a/b:c.d_e-f": `ünï "q" \\ \n\t\u0000\u001f 😀`, long: "\u0001".repeat(1024) };
    expect(await update(agent, version, odd)).toBe(version);
    expect(await read(agent)).toEqual({ version, metadata: odd });
    version += 1;
    const each = limits.metadataBytesMax / limits.metadataKeysMax;
    const full = Object.fromEntries(
      Array.from({ length: limits.metadataKeysMax }, (_, n) => {
        const key = `key.${n}`;
        return [key, "\u0001".repeat(each - key.length)];
      }),
    );
    expect(await update(agent, version, full)).toBe(version);
    expect(await read(agent)).toEqual({ version, metadata: full });
  });

  test("[X47] an older version, or the same again, is ignored, and the response has the current one", async () => {
    version += 5;
    const metadata = { stage: "kept" };
    expect(await update(agent, version, metadata)).toBe(version);
    expect(await update(agent, version - 1, { stage: "older" })).toBe(version);
    expect(await update(agent, version, { stage: "same" })).toBe(version);
    expect(await update(agent, 0, {})).toBe(version);
    expect(await read(agent)).toEqual({ version, metadata });
  });

  test("[X47] of concurrent updates that arrive out of order, the newest remains", async () => {
    const first = version + 1;
    const versions = Array.from({ length: 64 }, (_, n) => first + ((n * 37) % 64));
    expect(new Set(versions).size).toBe(64);
    version += 64;
    const responses = await Promise.all(versions.map((n) => update(agent, n, { n: String(n) })));
    for (const [n, answered] of responses.entries()) {
      expect(answered).toBeGreaterThanOrEqual(versions[n] ?? 0);
    }
    expect(Math.max(...responses)).toBe(version);
    expect(await read(agent)).toEqual({ version, metadata: { n: String(version) } });
  });

  test.runIf(isRoot)("[X48] a command cannot change, delete or replace the copy", async () => {
    const [folder, file] = [folderOf(agent), fileOf(agent)];
    const before = await read(agent);
    const attempts = [
      `echo {} > ${file}`,
      `rm -f ${file}`,
      `mv ${file} .`,
      `ln -sf /etc/passwd ${file}`,
      `touch ${folder}/more`,
      `chmod 777 ${folder}`,
      `rm -rf ${folder}`,
      `mv ${folder} ${folder}.away`,
    ];
    for (const attempt of attempts) {
      const result = await agent.sh(attempt);
      expect(result.exitCode, attempt).not.toBe(0);
      expect(result.stderr, attempt).toMatch(/[Pp]ermission denied|not permitted/);
    }
    expect(await read(agent)).toEqual(before);
    expect(statSync(folder)).toMatchObject({ uid: 0, mode: 0o40755 });
    expect(statSync(file)).toMatchObject({ uid: 0, mode: 0o100644 });
  });

  test("[X49] a metadata call needs the secret, and its size is bounded", async () => {
    const before = await read(agent);
    const good = { version: version + 1, metadata: { a: "b" } };
    const body = JSON.stringify(good);
    const anybody = await fetch(`${agent.url}/v1/metadata`, { method: "PUT", body });
    expect(anybody.status).toBe(401);
    const method = await agent.request("/v1/metadata", { method: "POST", body });
    expect([method.status, method.headers.get("allow")]).toEqual([405, "PUT"]);
    const metadata = { a: "x".repeat(8 * limits.metadataBytesMax) };
    expect((await put(agent, { ...good, metadata })).status).toBe(413);
    expect(await read(agent)).toEqual(before);
    version += 1;
    expect(agentMetadataSchema.safeParse(good).success).toBe(true);
    expect(await update(agent, good.version, good.metadata)).toBe(version);
  });
});

test("[X48] where commands run as the agent's own user, the next update repairs what they did", async () => {
  await using shared = await Agent.start({ tree: "subreaper", ...sharedUser });
  const [folder, file] = [folderOf(shared), fileOf(shared)];
  const deeds = [
    `rm ${file}`,
    `echo '{"version":99}' > ${file}`,
    `rm -r ${folder}`,
    `rm -r ${folder}; touch ${folder}`,
    `rm -r ${folder}; ln -s "$PWD" ${folder}`,
    `chmod 0 ${folder}`,
    `chmod 777 ${folder}`,
    `rm ${file}; mkdir ${file} ${file}/full`,
    `rm ${file}; ln -s "$PWD/target" ${file}`,
    `ln -s "$PWD/target" ${folder}/.metadata.json.new`,
    `mkfifo ${folder}/.metadata.json.new`,
    `mkdir -p ${folder}/.metadata.json.new/full`,
  ];
  for (const [n, deed] of deeds.entries()) {
    expect(await shared.sh(deed), deed).toMatchObject({ exitCode: 0, stderr: "" });
    expect(await update(shared, n + 1, { deed: String(n) }), deed).toBe(n + 1);
    expect(await read(shared), deed).toEqual({ version: n + 1, metadata: { deed: String(n) } });
    expect(statSync(folder).mode, deed).toBe(0o40755);
  }
  // Nothing was written through a link.
  expect(readdirSync(shared.workspace)).toEqual([]);
  expect(readdirSync(folder)).toEqual(["metadata.json"]);
});

test.runIf(isRoot)(
  "[X49] an update that cannot be written fails, commands still run, and a later update succeeds",
  async () => {
    const run = newRun();
    await using agent = await Agent.start({ tree: "subreaper", ownUid: 12_345, run });
    expect(agent.log).toContain(`no copy of the metadata in ${run}/berth`);
    expect((await agent.sh("echo runs")).stdout).toBe("runs\n");
    const refused = await put(agent, { version: 3, metadata: {} });
    expect(refused.status).toBe(503);
    const { error } = errorBodySchema.parse(await refused.json());
    expect(error).toMatchObject({ code: "unavailable", retryable: true });
    expect(error.message).toContain("EACCES");
    chownSync(run, 12_345, 12_345);
    expect(await update(agent, 3, { late: "yes" })).toBe(3);
    expect(await read(agent)).toEqual({ version: 3, metadata: { late: "yes" } });
    // A write that fails halfway leaves the copy that is there.
    mkdirSync(join(folderOf(agent), ".metadata.json.new", "full"), { recursive: true });
    const second = await put(agent, { version: 4, metadata: {} });
    expect(second.status).toBe(503);
    expect(await read(agent)).toEqual({ version: 3, metadata: { late: "yes" } });
  },
);

describe.each(identities())("the copy of the metadata in a jail of an engine that is %s", (as) => {
  const data = newData(as);
  let engine: TestEngine;
  beforeAll(async () => {
    engine = await startEngine(as, { data });
  });
  afterAll(async () => {
    const processes = engine.processes();
    expect(processes.length).toBeGreaterThan(1);
    await engine.stop();
    expect(tracesOf(data, processes)).toEqual([]);
    removeData(data);
  });

  const file = "/run/berth/metadata.json";
  const start = async (id: string) => {
    const container = engine.container(id);
    const call = newStart();
    const started = await container.start(call);
    const sh = (command: string) =>
      exec(container, started, call.secret, { command, timeoutMs: 20_000 });
    return {
      sh,
      copy: async () => JSON.parse((await sh(`cat ${file}`)).stdout),
      async update(version: number, metadata: Record<string, string>) {
        const request = new Request(`${started.address}/v1/metadata`, {
          method: "PUT",
          headers: { authorization: `Bearer ${call.secret}` },
          body: JSON.stringify({ version, metadata }),
        });
        const response = await container.agent(started.address, request);
        return agentMetadataStoredSchema.parse(await response.json()).version;
      },
    };
  };

  test("[X45] each incarnation starts with the copy at version 0", async () => {
    const id = newId();
    const first = await start(id);
    expect(await first.copy()).toEqual(initialCopy);
    expect(await first.update(7, { a: "b" })).toBe(7);
    expect(await first.copy()).toEqual({ version: 7, metadata: { a: "b" } });
    const second = await start(id);
    expect(await second.copy()).toEqual(initialCopy);
    expect(await second.update(8, { a: "c" })).toBe(8);
    expect(await second.copy()).toEqual({ version: 8, metadata: { a: "c" } });
  });

  test("[X48] a command cannot delete the copy, or the next update repairs it", async () => {
    const { sh, copy, update } = await start(newId());
    expect(await update(1, { a: "b" })).toBe(1);
    const removed = await sh("rm -rf /run/berth; ls /run");
    if (as === "root") {
      expect(removed.stderr).toMatch(/Permission denied/);
      expect(await copy()).toEqual({ version: 1, metadata: { a: "b" } });
    } else {
      expect(removed).toMatchObject({ stderr: "", stdout: "lock\n" });
    }
    expect(await update(2, { a: "c" })).toBe(2);
    expect(await copy()).toEqual({ version: 2, metadata: { a: "c" } });
  });
});
