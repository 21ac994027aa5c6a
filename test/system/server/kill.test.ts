import { describe, expect, it } from "vitest";
import { type Random, randomOf } from "../../linearizability/history.ts";
import { until } from "../../until.ts";
import { killRounds, Restarts } from "../file-server.ts";
import { alive } from "../processes.ts";
import type { Answer, Server } from "../server.ts";
import { KilledSandbox, ticketOf } from "./kill-sandbox.ts";

const callers = 10;
const callsEach = 20;
const sandboxes = 4;

const servers = new Restarts();

/** What this round's callers have sent and been answered. */
type Round = {
  number: number;
  sent: number;
  answered: number;
  killed: boolean;
  ok: Map<string, number>;
};

async function caller(
  server: Server,
  sandbox: KilledSandbox,
  name: string,
  random: Random,
  round: Round,
): Promise<void> {
  const path = `/v1/sandboxes/${sandbox.id}`;
  /** Undefined: the server was killed under the call. */
  const call = async (
    what: string,
    method: string,
    tail: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer | undefined> => {
    if (round.killed) return undefined;
    round.sent += 1;
    try {
      const response = await server.call(method, path + tail, body, { headers });
      if (response.status === 500) expect.fail(`${what} answered ${JSON.stringify(response.body)}`);
      round.answered += 1;
      if (response.status < 300) round.ok.set(what, (round.ok.get(what) ?? 0) + 1);
      return response;
    } catch (error) {
      if (!round.killed) throw error;
      return undefined;
    }
  };

  const patch = async () => {
    const count = sandbox.counts.get(name) ?? { acknowledged: 0, sent: 0 };
    sandbox.counts.set(name, count);
    count.sent += 1;
    const value = count.sent;
    const response = await call("patch", "PATCH", "/metadata", { [name]: String(value) });
    if (response?.status !== 200) return;
    count.acknowledged = value;
    sandbox.version = Math.max(sandbox.version, Number(response.body.version));
  };
  const lease = async (n: number) => {
    const who = `${name}-${round.number}-${n}`;
    const response = await call("acquire", "POST", "/lease", { ...ticketOf(who), waitMs: 300 });
    if (response?.status !== 201) return;
    const held = sandbox.granted(who, response.body);
    const headers = { "berth-lease": held.token };
    const ran = await call("leased exec", "POST", "/exec", { command: "true" }, headers);
    if (ran?.status === 200) held.used = true;
    if (round.killed) return;
    held.releasing = true;
    const released = await call("release", "DELETE", "/lease", undefined, headers);
    if (released?.status === 200) sandbox.wasReleased(held);
  };

  for (let n = 0; n < callsEach && !round.killed; n++) {
    const turn = random(10);
    if (turn < 4) await patch();
    else if (turn < 7) await lease(n);
    else if (turn < 8) await call("exec", "POST", "/exec", { command: "echo x >> log" });
    else if (turn < 9) {
      const what = random(2) === 0 ? "pause" : "start";
      await call(what, "POST", `/${what}`);
    } else if (sandbox.breaks > 0 || random(4) > 0) await call("read", "GET", "/lease");
    else {
      sandbox.breaks += 1;
      await call("break", "DELETE", "/lease?break=true&reason=to+see+it");
    }
  }
}

describe("kill -9 of the whole server", () => {
  it("[Y31] repeated during two hundred mixed calls, undoes no acknowledged change and leaves nothing running", {
    timeout: 600_000,
  }, async () => {
    let server = await servers.start();
    const all: KilledSandbox[] = [];
    for (let n = 0; n < sandboxes; n++) {
      const id = await server.create();
      expect((await server.exec(id, "echo kept > kept")).body).toMatchObject({ exitCode: 0 });
      all.push(new KilledSandbox(id));
    }
    const ok = new Map<string, number>();
    let unanswered = 0;
    for (let number = 1; number <= killRounds; number++) {
      const random = randomOf(number);
      const round: Round = { number, sent: 0, answered: 0, killed: false, ok };
      const parts = [server.launcher, server.workerd, server.engine].map(({ pid }) => pid);
      const killAt = 40 + random(110);
      const calls = Array.from({ length: callers }, (_, n) =>
        caller(
          server,
          all[n % sandboxes] as KilledSandbox,
          `c${n}`,
          randomOf(number * 100 + n),
          round,
        ),
      );
      const working = Promise.all(calls);
      working.catch(() => undefined);
      await Promise.race([
        until("half of the calls are answered", () => round.answered >= killAt, 60_000),
        working,
      ]);
      expect(round.sent, "calls are under way").toBeGreaterThan(round.answered);
      round.killed = true;
      // It takes time to read the table of processes, and nothing is to be answered in it.
      for (const pid of parts) process.kill(pid, "SIGSTOP");
      const tree = server.processes();
      for (const pid of parts) process.kill(pid, "SIGKILL");
      await working;
      unanswered += round.sent - round.answered;
      await server.ended();
      server = await servers.start();
      expect(alive(tree)).toEqual([]);
      await Promise.all(all.map((sandbox) => sandbox.check(server)));
    }
    // It was not for nothing: each kind of call has succeeded, and calls were cut off.
    const kinds = ["patch", "acquire", "leased exec", "release", "exec", "pause", "start", "break"];
    for (const what of kinds) expect(ok.get(what) ?? 0, what).toBeGreaterThan(0);
    expect(unanswered).toBeGreaterThanOrEqual(killRounds);
    console.log(JSON.stringify({ ...Object.fromEntries(ok), unanswered }));
    await servers.stop(server);
  });
});
