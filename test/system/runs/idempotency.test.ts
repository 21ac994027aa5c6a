import { describe, expect, it } from "vitest";
import { type Random, randomOf } from "../../linearizability/history.ts";
import { until } from "../../until.ts";
import { killRounds, Restarts } from "../file-server.ts";
import type { Answer, Server } from "../server.ts";

const callers = 8;
const keysEach = 6;

/** Aborted, its caller goes away in the middle. */
function exec(
  server: Server,
  id: string,
  key: string | undefined,
  command: string,
  signal: AbortSignal = AbortSignal.timeout(60_000),
): Promise<Answer> {
  const headers = key === undefined ? {} : { "idempotency-key": key };
  return server.call("POST", `/v1/sandboxes/${id}/exec`, { command }, { headers, signal });
}

describe("calls with a key and kill -9 of the whole server", () => {
  const servers = new Restarts();

  it("[K17] repeated across kills, no command runs twice, and every acknowledged one ran", {
    timeout: 600_000,
  }, async () => {
    let server = await servers.start();
    const id = await server.create();
    const codes = new Map<string, number>();
    const note = (what: string) => codes.set(what, (codes.get(what) ?? 0) + 1);
    const commandOf = (key: string, ms: number) => `echo ${key} >> log; sleep 0.${ms}`;

    for (let round = 1; round <= killRounds; round++) {
      const known = new Map<string, Answer>();
      const open = new Map<string, string>();
      let killed = false;
      const caller = async (name: string, random: Random) => {
        for (let n = 0; n < keysEach && !killed; n++) {
          const key = `${name}-${n}`;
          const command = commandOf(key, random(9));
          open.set(key, command);
          try {
            const response = await exec(server, id, key, command);
            known.set(key, response);
            if (random(3) === 0) expect(await exec(server, id, key, command)).toEqual(response);
          } catch (error) {
            if (!killed) throw error;
          }
        }
      };
      const killAt = randomOf(round)(callers * 3);
      const working = Promise.all(
        Array.from({ length: callers }, (_, n) =>
          caller(`r${round}c${n}`, randomOf(round * 100 + n)),
        ),
      );
      working.catch(() => undefined);
      await until("calls are under way", () => known.size >= killAt && open.size > known.size);
      killed = true;
      server = await servers.kill(server, "server");
      await working;

      // The first call finds the loss; a container that was lost too often is only started by who says so.
      await server.exec(id, "true");
      const running = await server.call("POST", `/v1/sandboxes/${id}/start`);
      expect(running.body).toMatchObject({ state: "running" });
      for (const [key, command] of open) {
        const before = known.get(key);
        let response: Answer = { status: 503, body: {} };
        await until(`${key} is known`, async () => {
          response = await exec(server, id, key, command);
          return response.status !== 503;
        });
        const code = response.body.error?.code;
        note(before === undefined ? `unanswered: ${code ?? "ran"}` : `answered: ${code}`);
        if (before?.status === 200) {
          expect(response.status).toBe(410);
          expect(response.body.error).toMatchObject({ code: "result_gone", exitCode: 0 });
        } else expect([200, 410, 502]).toContain(response.status);
        known.set(key, response);
      }
      const log = await server.exec(id, "cat log");
      const lines = String(log.body.stdout).trim().split("\n");
      expect(new Set(lines).size, "no key ran twice").toBe(lines.length);
      for (const [key, response] of known) {
        if (response.status !== 502) expect(lines, `${key} ran`).toContain(key);
      }
    }
    // It was not for nothing: calls were cut off, and answers were kept.
    expect(codes.get("answered: result_gone") ?? 0).toBeGreaterThan(killRounds);
    expect(codes.get("unanswered: operation_interrupted") ?? 0).toBeGreaterThan(killRounds);
    console.log(JSON.stringify(Object.fromEntries(codes)));
    await servers.stop(server);
  });
});

describe("a caller that disconnects", () => {
  const servers = new Restarts();

  it("[K18] leaves a command with a key running, which counts as in flight until its end; one without a key ends", async () => {
    const server = await servers.start();
    const id = await server.create();
    const command = (name: string) =>
      `echo $$ > ${name}; until [ -e end ]; do sleep 0.05; done; echo it`;
    const hasBegun = async (name: string) =>
      (await server.exec(id, `test -s ${name}`)).body.exitCode === 0;
    const isRunning = async (name: string) =>
      (await server.exec(id, `kill -0 $(cat ${name})`)).body.exitCode === 0;
    const leaving = new AbortController();
    const calls = [
      exec(server, id, "kept", command("kept"), leaving.signal),
      exec(server, id, undefined, command("lost"), leaving.signal),
    ].map((call) =>
      call.then(
        () => "answered",
        () => "left",
      ),
    );
    await until("both run", async () => (await hasBegun("kept")) && (await hasBegun("lost")));
    leaving.abort();
    expect(await Promise.all(calls)).toEqual(["left", "left"]);
    await until("the one without a key has ended", async () => !(await isRunning("lost")));
    expect(await isRunning("kept")).toBe(true);

    // It still counts as running: nobody gets the lease meanwhile.
    const path = `/v1/sandboxes/${id}/lease`;
    expect((await server.call("POST", path, { holder: "next" })).status).toBe(423);
    const joined = exec(server, id, "kept", command("kept"));
    await exec(server, id, "end", "touch end");
    const answer = await joined;
    expect(answer.body).toMatchObject({ exitCode: 0, stdout: "it\n" });
    expect(await exec(server, id, "kept", command("kept"))).toEqual(answer);
    const granted = await server.call("POST", path, { holder: "next", waitMs: 10_000 });
    expect(granted.status).toBe(201);
    await servers.stop(server);
  });
});
