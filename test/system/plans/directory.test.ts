import { describe, expect, it } from "vitest";
import { until } from "../../until.ts";
import { killRounds, killServer, Restarts } from "../file-server.ts";
import type { Server } from "../server.ts";

const callers = 50;
const scopes = 4;
const lifetimeMs = 3_000;

const servers = new Restarts();
const alarmServers = new Restarts();

const scopeOf = (n: number) => ({ repo: `github.com/kill/${n}`, branch: "main" });

/** The first process of each jail; others of the same name supervise commands. */
function countJails(of: Server): number {
  const agents = of.processes().filter(({ command }) => command.includes("berth-agent jail"));
  return agents.filter(({ parent }) => !agents.some(({ pid }) => pid === parent)).length;
}

async function listed(server: Server, scope: string): Promise<{ id: string; state: string }[]> {
  const { body } = await server.call("GET", `/v1/sandboxes?scope.repo=${scope}&limit=1000`);
  return body.sandboxes as { id: string; state: string }[];
}

describe("find or create under kill -9", () => {
  it("[D13] fifty callers and repeated kills of the whole server: each scope has one live sandbox, and no extra container runs", {
    timeout: 600_000,
  }, async () => {
    let server = await servers.start();
    let answered = 0;
    let unanswered = 0;
    for (let round = 1; round <= killRounds; round++) {
      let inRound = 0;
      let restarted: Promise<Server> | undefined;
      const answeredIds = new Map<number, Set<string>>();
      const killAt = Math.max(1, (round * 7) % callers);
      const caller = async (n: number) => {
        const scope = scopeOf(n % scopes);
        // Some replace: the old one must be gone in the end, and only that.
        let onExisting = n === round ? "replace" : "reuse";
        try {
          // Again and again, so that the end comes into the middle however fast the answers are.
          while (restarted === undefined) {
            const call = { scope, onExisting, waitMs: 10_000 };
            const { status, body } = await server.call("POST", "/v1/sandboxes", call);
            if (status !== 200 && status !== 201) return;
            onExisting = "reuse";
            answered++;
            const ids = answeredIds.get(n % scopes) ?? new Set();
            answeredIds.set(n % scopes, ids.add(String(body.id)));
            inRound += 1;
            if (inRound === killAt) restarted = servers.kill(server, "server");
          }
        } catch {
          unanswered++;
        }
      };
      await Promise.all(Array.from({ length: callers }, (_, n) => caller(n)));
      expect(restarted).toBeDefined();
      server = (await restarted) ?? server;
      for (let n = 0; n < scopes; n++) {
        const call = { scope: scopeOf(n), waitMs: 20_000 };
        const repeated = await server.call("POST", "/v1/sandboxes", call);
        expect([200, 201]).toContain(repeated.status);
        let shown: { id: string; state: string }[] = [];
        await until(`one sandbox of scope ${n}`, async () => {
          shown = await listed(server, scopeOf(n).repo);
          return shown.length === 1;
        });
        expect(shown[0]?.id).toBe(repeated.body.id);
        // Without a replacement every answered caller got this sandbox.
        const ids = answeredIds.get(n) ?? new Set();
        if (n !== round % scopes) for (const id of ids) expect(id).toBe(repeated.body.id);
        // Each kill has cost it a container; the fourth in ten minutes is not started again unasked.
        await server.call("POST", `/v1/sandboxes/${repeated.body.id}/start`);
        const ran = await server.exec(String(repeated.body.id), "true");
        expect(ran.body).toMatchObject({ exitCode: 0 });
      }
    }
    expect(answered).toBeGreaterThan(0);
    expect(unanswered).toBeGreaterThan(0);
    // As many agents as live sandboxes, counted by looking at the processes: who was replaced goes at once.
    await until("no container more", () => countJails(server) === scopes);
    // Its last word comes after its container went.
    let counted: Record<string, unknown> = {};
    await until("no sandbox more is counted", async () => {
      counted = (await server.call("GET", "/v1/counts")).body;
      return counted.total === scopes;
    });
    console.log(
      JSON.stringify({ rounds: killRounds, answered, unanswered, counts: counted.states }),
    );
    await servers.stop(server);
  });

  it("[D14] alarms that were due while the server was down fire after its start and carry out what was decided", async () => {
    const first = await alarmServers.start();
    const call = { maxLifetimeMs: lifetimeMs, waitMs: 20_000 };
    const { body } = await first.call("POST", "/v1/sandboxes", call);
    killServer(first);
    await first.ended();
    const deadline = Date.parse(String(body.createdAt)) + lifetimeMs;
    await until("its deadline has passed while nothing runs", () => Date.now() > deadline);
    const second = await alarmServers.start();
    // Nobody asks the sandbox: only its alarm can end it, and only its report can say so.
    await until("its end is listed", async () => {
      const { body: page } = await second.call("GET", "/v1/sandboxes?state=destroyed");
      return (page.sandboxes as { id: string }[]).some(({ id }) => id === body.id);
    });
  });
});
