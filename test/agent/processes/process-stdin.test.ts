import { createHash, randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { stdinTakenSchema } from "../../../src/protocol/process.ts";
import { until } from "../../until.ts";
import { Agent, fenced } from "../agent.ts";
import { Asker, outputOf, refusalOf } from "./processes.ts";

const MiB = 1024 * 1024;

describe("the standard input of a process", () => {
  const agent = Agent.forBlock();
  const ask = new Asker(agent);

  test("[P18] what is written arrives whole and once, however often and in whatever pieces it is repeated", async () => {
    const { id } = await ask.sh("sha256sum");
    const all = randomBytes(10 * MiB);
    for (let offset = 0; offset < all.length; offset += MiB) {
      const piece = all.subarray(offset, offset + MiB);
      const end = offset + piece.length;
      const state = await ask.written(id, piece, { offset });
      expect(stdinTakenSchema.parse(state)).toEqual({ offset: end, ended: false });
      // Repeated, and with more than was accepted.
      expect(await ask.written(id, piece, { offset })).toEqual(state);
      const over = Math.max(0, offset - 1000);
      expect(await ask.written(id, all.subarray(over, end), { offset: over })).toEqual(state);
    }
    const last = { offset: all.length, eof: 1 };
    expect(await ask.written(id, "", last)).toEqual({ offset: all.length, ended: true });
    expect(await ask.written(id, "", last)).toEqual({ offset: all.length, ended: true });
    expect(await ask.exited(id)).toMatchObject({ stdin: { offset: all.length, ended: true } });
    const hash = createHash("sha256").update(all).digest("hex");
    expect(outputOf(await ask.events(id)).toString()).toBe(`${hash}  -\n`);
  });

  test("[P18] bytes that begin beyond what was accepted are a gap: none of them is accepted", async () => {
    const { id } = await ask.sh("cat");
    await ask.written(id, "abc");
    const refused = await refusalOf(await ask.stdin(id, "x", { offset: 4 }));
    expect(refused).toMatchObject({ status: 409, code: "stdin_gap", offset: 3 });
    await ask.written(id, "def", { offset: 3, eof: 1 });
    await ask.exited(id);
    expect((await ask.bytes(id, "stdout")).toString()).toBe("abcdef");
  });

  test("[P18] writes without an offset follow one another, each whole", async () => {
    const { id } = await ask.sh("cat");
    const words = Array.from({ length: 50 }, (_, n) => `${n}:${"x".repeat(1000)}\n`);
    await Promise.all(words.map((word) => ask.written(id, word)));
    await ask.written(id, "", { eof: 1 });
    await ask.exited(id);
    const lines = (await ask.bytes(id, "stdout")).toString().split(/(?<=\n)/);
    expect(lines.sort()).toEqual(words.sort());
  });

  test("[P19] a process that reads late gets what was accepted; beyond the bound a write waits for it", async () => {
    await agent.sh("mkfifo gate");
    const { id } = await ask.sh("read go < gate; wc -c");
    const memory = agent.memoryKiB();
    const big = new Uint8Array(4 * MiB);
    expect((await ask.written(id, big)).offset).toBe(4 * MiB);
    let isTaken = false;
    const second = ask.written(id, big).then((state) => {
      isTaken = true;
      return state;
    });
    await until(
      "a part of the second is taken",
      async () => (await ask.get(id)).stdin.offset > 4 * MiB,
    );
    expect(isTaken).toBe(false);
    await agent.keepsLessThan(60 * 1024, memory);
    await agent.sh("echo go > gate");
    expect((await second).offset).toBe(8 * MiB);
    await ask.written(id, "", { eof: 1 });
    await ask.exited(id);
    expect((await ask.bytes(id, "stdout")).toString()).toBe(`${8 * MiB}\n`);
  });

  test("[P19] a write that the process does not read in time returns how far it got, and can be continued", async () => {
    await agent.sh("mkfifo gate2");
    const { id } = await ask.sh("read go < gate2; wc -c");
    const big = new Uint8Array(4 * MiB);
    await ask.written(id, big);
    const refused = await refusalOf(await ask.stdin(id, big, { offset: 4 * MiB }));
    expect(refused).toMatchObject({ status: 503, code: "unavailable", retryable: true });
    const offset = Number(refused.offset);
    expect(offset).toBeGreaterThan(4 * MiB);
    expect(offset).toBeLessThan(8 * MiB);
    await agent.sh("echo go > gate2");
    await ask.written(id, big.subarray(offset - 4 * MiB), { offset, eof: 1 });
    await ask.exited(id);
    expect((await ask.bytes(id, "stdout")).toString()).toBe(`${8 * MiB}\n`);
  });

  test("[P20] input that is closed by eof, by the process or with it takes no more, and says how much it took", async () => {
    const byEof = await ask.sh("sleep 1000");
    await ask.written(byEof.id, "abc", { eof: 1 });
    const byItself = await ask.sh("read line; exec 0<&-; echo closed; sleep 1000");
    await ask.written(byItself.id, "x\n");
    await ask.wait(byItself.id, { for: "log:closed" });
    await until("it was noticed", async () => (await ask.stdin(byItself.id, "y\n")).status === 409);
    const byExit = await ask.sh("true");
    await ask.exited(byExit.id);
    for (const { id } of [byEof, byItself, byExit]) {
      const { offset } = (await ask.get(id)).stdin;
      const refused = await refusalOf(await ask.stdin(id, "more", { offset }));
      expect(refused).toMatchObject({ status: 409, code: "stdin_closed", offset });
    }
    // Accepted bytes may be written again.
    expect(await ask.written(byEof.id, "abc", { offset: 0 })).toEqual({ offset: 3, ended: true });
    expect(await ask.written(byExit.id, "", { offset: 0, eof: 1 })).toMatchObject({ ended: true });
    await Promise.all([ask.end(byEof.id), ask.end(byItself.id)]);
  });

  test("[P20] a write that waits when its process is ended fails at once", async () => {
    const { id } = await ask.sh("sleep 1000");
    const big = new Uint8Array(4 * MiB);
    await ask.written(id, big);
    const waiting = ask.stdin(id, big);
    await until("it waits", async () => (await ask.get(id)).stdin.offset > 4 * MiB);
    await ask.end(id);
    expect(await refusalOf(await waiting)).toMatchObject({ code: "stdin_closed" });
  });

  test("[P18] a write that is too large is refused and takes nothing", async () => {
    const { id } = await ask.sh("cat");
    const refused = await refusalOf(await ask.stdin(id, new Uint8Array(4 * MiB + 1)));
    expect(refused.status).toBe(413);
    expect((await ask.get(id)).stdin).toEqual({ offset: 0, ended: false });
    await ask.end(id);
  });

  // The fence only grows: each test begins above the previous ones.

  test("[P26] a fence that rises in the middle of a write does not interrupt it: each of its bytes arrives once", async () => {
    await agent.sh("mkfifo gate3");
    const { id } = await ask.sh("read go < gate3; sha256sum");
    const [first, second] = [randomBytes(4 * MiB), randomBytes(4 * MiB)];
    await ask.written(id, first);
    const path = `/v1/processes/${id}/stdin?eof=1`;
    const waiting = agent.request(path, { method: "POST", body: second, ...fenced(1) });
    await until("a part is accepted", async () => (await ask.get(id)).stdin.offset > 4 * MiB);
    expect(await agent.raiseFence(2, false)).toEqual({ fence: 2, left: 1 });
    // A write with the old fence is now refused.
    const late = agent.request(path, { method: "POST", body: "late", ...fenced(1) });
    expect(await refusalOf(await late)).toMatchObject({ status: 409, code: "stale_fence" });
    await agent.post({ command: "echo go > gate3" }, fenced(2));
    expect(await (await waiting).json()).toEqual({ offset: 8 * MiB, ended: true });
    await ask.exited(id);
    const hash = createHash("sha256").update(first).update(second).digest("hex");
    expect((await ask.bytes(id, "stdout")).toString()).toBe(`${hash}  -\n`);
    expect(await agent.raiseFence(2, false)).toEqual({ fence: 2, left: 0 });
  });

  test("[P26] a lease that is lost in the middle of a write ends it, and the writer learns how far it got", async () => {
    const headers = fenced(3);
    const body = JSON.stringify({ id: "slow", command: "sleep 1000" });
    expect(
      (await agent.request("/v1/processes", { method: "POST", body, ...headers })).status,
    ).toBe(201);
    const path = "/v1/processes/slow/stdin";
    const big = { method: "POST", body: new Uint8Array(4 * MiB), ...headers };
    expect((await agent.request(path, big)).status).toBe(200);
    const waiting = [agent.request(path, big)];
    await until("a part is accepted", async () => (await ask.get("slow")).stdin.offset > 4 * MiB);
    waiting.push(agent.request(path, big));
    expect(await agent.raiseFence(4, true)).toEqual({ fence: 4, left: 0 });
    const { offset } = (await ask.get("slow")).stdin;
    const [cut, behind] = await Promise.all(waiting.map(async (write) => refusalOf(await write)));
    expect(cut).toMatchObject({ code: "operation_interrupted", reason: "lease_lost", offset });
    expect(behind).toMatchObject({ status: 409, code: "stale_fence" });
    expect(await ask.get("slow")).toMatchObject({ state: "running", stdin: { offset } });
    await agent.request("/v1/processes/slow", { method: "DELETE", ...fenced(4) });
  });
});
