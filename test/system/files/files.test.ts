import { createHash } from "node:crypto";
import { readdirSync, readlinkSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { randomOf } from "../../linearizability/history.ts";
import { until } from "../../until.ts";
import { startFileServer } from "../file-server.ts";
import { processesNaming } from "../processes.ts";
import { forgetPeak, peakMiB, Upload } from "./uploads.ts";

/** 1024 for the whole of it; the rest of the suite wants its turn. */
const largeMiB = Number(process.env.BERTH_TEST_FILE_MIB ?? 200);
/** A part of a file that would be held whole; the heap of the agent's runtime swings by 45 to 68 MiB, whatever the size. */
const growthMaxMiB = 96;
const kills = 9;

const mebibyte = 2 ** 20;
const piece = Buffer.alloc(
  mebibyte,
  Uint8Array.from({ length: 251 }, (_, n) => n),
);

/** As fast as it is taken. */
function large(): ReadableStream<Uint8Array> {
  let left = largeMiB;
  return new ReadableStream({
    pull(controller) {
      if (left-- > 0) controller.enqueue(piece);
      else controller.close();
    },
  });
}

function hashOfLarge(): string {
  const hash = createHash("sha256");
  for (let n = 0; n < largeMiB; n++) hash.update(piece);
  return hash.digest("hex");
}

const server = await startFileServer();

const of = (id: string, tail: string) => `${server.url}/v1/sandboxes/${id}/${tail}`;
const key = () => ({ authorization: `Bearer ${server.key}` });

const put = (id: string, path: string, body: RequestInit["body"], headers = {}) =>
  fetch(of(id, `files?path=${path}`), {
    ...{ method: "PUT", headers: { ...key(), ...headers }, body: body ?? null },
    ...{ duplex: "half" },
  } as RequestInit);

async function textOf(id: string, path: string): Promise<string> {
  const answer = await fetch(of(id, `files?path=${path}`), { headers: key() });
  const text = await answer.text();
  expect(answer.status, text).toBe(200);
  return text;
}

async function names(id: string): Promise<string[]> {
  const seen = await server.exec(id, "ls -A");
  return String(seen.body.stdout).split("\n").filter(Boolean);
}

/** Whether calls are in flight that a lease would have to wait for. */
async function isBusy(id: string): Promise<boolean> {
  const path = `/v1/sandboxes/${id}/lease`;
  const { token } = (await server.call("POST", path, {})).body;
  if (token === undefined) return true;
  await server.call("DELETE", path, undefined, { headers: { "berth-lease": String(token) } });
  return false;
}

/** Begins an upload, and returns when the agent writes it to a file that has no name yet. */
async function beginUpload(id: string, path: string, bytes: number | undefined, first = piece) {
  const upload = new Upload(server, `/v1/sandboxes/${id}/files?path=${path}`, bytes);
  await upload.send(first);
  const files = `/proc/${server.agentOf(id).pid}/fd`;
  await until("it is being written", () =>
    readdirSync(files).some((fd) => /^\/(?!memfd:).* \(deleted\)$/.test(linkOf(`${files}/${fd}`))),
  );
  return upload;
}

function linkOf(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    return "";
  }
}

async function hashOf(answer: Response): Promise<string> {
  const hash = createHash("sha256");
  for await (const bytes of answer.body ?? []) hash.update(bytes);
  return hash.digest("hex");
}

describe("files of a real Berth", () => {
  it("[FD10] of any size are uploaded and downloaded with flat memory of Worker and agent", {
    timeout: 300_000,
  }, async () => {
    const id = await server.create();
    // What the first call loads is none of what a large one holds.
    expect((await put(id, "small", "1")).status).toBe(201);
    expect(await textOf(id, "small")).toBe("1");
    const parts = [server.workerd.pid, server.agentOf(id).pid];
    const before = parts.map((pid) => {
      forgetPeak(pid);
      return peakMiB(pid);
    });
    const upload = await put(id, "large", large());
    expect(upload.status, await upload.text()).toBe(201);
    const download = await fetch(of(id, "files?path=large"), { headers: key() });
    expect(await hashOf(download)).toBe(hashOfLarge());
    for (const [index, pid] of parts.entries()) {
      const growth = peakMiB(pid) - (before[index] ?? 0);
      console.log(`${["workerd", "agent"][index]}: ${growth.toFixed(1)} MiB above the beginning`);
      expect(growth).toBeLessThan(growthMaxMiB);
    }
  });

  it.each([
    ["with a length", 10 * mebibyte],
    ["in chunks", undefined],
  ])("[FD11] that are cut off on their way up are not written: %s", async (_how, bytes) => {
    const id = await server.create();
    expect((await put(id, "old", "old")).status).toBe(201);
    for (const name of ["old", "new"]) {
      const upload = await beginUpload(id, name, bytes);
      upload.breakOff();
      expect(await upload.answer).toBeUndefined();
      await until("nobody waits for it any more", async () => !(await isBusy(id)));
    }
    expect(await textOf(id, "old")).toBe("old");
    expect(await names(id)).toEqual(["old"]);
  });

  it("[FD11] are not written if their uploads are cut off at any byte, many at once", async () => {
    const id = await server.create();
    const random = randomOf(11);
    const cut = Array.from({ length: 32 }, async (_, n) => {
      const bytes = n % 2 === 0 ? 4 * mebibyte : undefined;
      const upload = new Upload(server, `/v1/sandboxes/${id}/files?path=f${n}`, bytes);
      await upload.send(piece.subarray(0, random(mebibyte)));
      if (random(2) === 0) await upload.send(piece.subarray(0, random(mebibyte)));
      upload.breakOff();
      return upload.answer;
    });
    expect((await Promise.all(cut)).filter((answer) => answer !== undefined)).toEqual([]);
    await until("nobody waits for them any more", async () => !(await isBusy(id)));
    expect(await names(id)).toEqual([]);
  });

  it("[FD12] are complete, old or new, if the agent is killed during a write", async () => {
    const id = await server.create();
    let before = "old";
    expect((await put(id, "file", before)).status).toBe(201);
    const outcomes = new Set<string>();
    for (let n = 0; n < kills; n++) {
      const next = `${n}`.repeat(3 * mebibyte);
      const first = Buffer.from(next.slice(0, mebibyte));
      const upload = await beginUpload(id, "file", next.length, first);
      // A third has not sent all of it, a third has and does not wait, a third has its answer.
      if (n % 3 > 0) upload.end(next.slice(mebibyte));
      if (n % 3 === 2) await upload.answer;
      process.kill(server.agentOf(id).pid, "SIGKILL");
      const answer = await upload.answer;
      // The next call finds a loss that nobody reported.
      await server.exec(id, "true");
      const started = await server.call("POST", `/v1/sandboxes/${id}/start`);
      expect(started.body).toMatchObject({ state: "running" });
      const now = await textOf(id, "file");
      expect([before, next].includes(now), `round ${n}: neither the old nor the new file`).toBe(
        true,
      );
      if (answer?.status === 200) expect(now === next).toBe(true);
      else if (answer !== undefined) expect(answer.code).toBe("operation_interrupted");
      outcomes.add(answer?.code ?? String(answer?.status));
      before = now;
      expect(await names(id)).toEqual(["file"]);
    }
    console.log(JSON.stringify([...outcomes]));
    expect(outcomes).toContain("operation_interrupted");
    expect(outcomes).toContain("200");
  });

  it("[FD13] a refused upload gets an error body, also if the client sends all of it first", async () => {
    const id = await server.create();
    expect((await put(id, "there", "1")).status).toBe(201);
    const body = Buffer.alloc(24 * mebibyte);
    const codeOf = async (pending: Promise<Response>) => {
      const answer = await pending;
      const { error } = (await answer.json()) as { error: { code: string } };
      return [answer.status, error.code];
    };
    const refused = await Promise.all([
      codeOf(put(id, "%FF", body)),
      codeOf(put(id, "a", body, { authorization: "Bearer berth_local_nobody" })),
      codeOf(put(id, "there", body, { "if-none-match": "*" })),
      codeOf(put(id, "/tmp", body)),
      codeOf(put(id, "none/there", body)),
    ]);
    expect(refused).toEqual([
      [400, "bad_request"],
      [401, "unauthenticated"],
      [412, "file_changed"],
      [400, "not_a_file"],
      [404, "file_not_found"],
    ]);
    const lease = await server.call("POST", `/v1/sandboxes/${id}/lease`, { ttlMs: 60_000 });
    expect(lease.status).toBe(201);
    expect(await codeOf(put(id, "there", body))).toEqual([423, "lease_held"]);
    expect(await textOf(id, "there")).toBe("1");
  });

  it("[FD14] an upload continues while another caller connects and disconnects", async () => {
    const id = await server.create();
    const upload = await beginUpload(id, "file", 2 * mebibyte);
    const leaving = new AbortController();
    const { signal } = leaving;
    const call = { command: "touch begun; sleep 61.25" };
    const left = server
      .call("POST", `/v1/sandboxes/${id}/exec`, call, { signal })
      .catch(() => "left");
    await until("it runs", async () => (await names(id)).includes("begun"));
    expect(processesNaming("sleep 61.25").length).toBeGreaterThan(0);
    leaving.abort();
    expect(await left).toBe("left");
    await until("it was ended", () => processesNaming("sleep 61.25").length === 0);
    upload.end(piece);
    expect(await upload.answer).toEqual({ status: 201, code: undefined });
    expect((await names(id)).sort()).toEqual(["begun", "file"]);
  });
});
