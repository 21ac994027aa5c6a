import { describe, expect, test } from "vitest";
import { errorBodySchema } from "../../../src/protocol/errors.ts";
import { agentWorkSchema } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { terminalSchema } from "../../../src/protocol/terminal.ts";
import { until } from "../../until.ts";
import { Agent, kinds } from "../agent.ts";
import { Viewer } from "./terminal-socket.ts";
import {
  endTerminal,
  isGone,
  listTerminals,
  livePtys,
  openTerminal,
  postTerminal,
  script,
  terminalAgent,
  terminalNow,
} from "./terminals.ts";

const quiet = { argv: ["cat"] };

describe.each(kinds)("one terminal for each id, trees held by %s", (tree) => {
  const agent = terminalAgent(tree);

  const opened = async (id: string, call: Record<string, unknown> = quiet) => {
    const response = await postTerminal(agent, { id, ...call });
    const text = await response.text();
    expect([200, 201], text).toContain(response.status);
    return { status: response.status, terminal: terminalSchema.parse(JSON.parse(text)) };
  };
  const refused = async (call: Record<string, unknown>, headers = {}) => {
    const response = await postTerminal(agent, call, headers);
    return { status: response.status, ...errorBodySchema.parse(await response.json()) };
  };
  /** While the work runs. */
  const neverMorePtysThanListed = async (work: Promise<unknown>) => {
    let isOver = false;
    const over = work.finally(() => {
      isOver = true;
    });
    const listed = async () => (await listTerminals(agent)).map(({ id }) => id);
    let most = 0;
    let before = await listed();
    while (!isOver) {
      const live = livePtys(agent);
      const after = await listed();
      // Every PTY that was counted was listed at that moment, so it is in the list before or after.
      expect(live).toBeLessThanOrEqual(new Set([...before, ...after]).size);
      most = Math.max(most, live);
      before = after;
    }
    await over;
    most = Math.max(most, livePtys(agent));
    expect(most).toBeGreaterThan(0);
  };

  test("[L10] two hundred callers of one id at once get one terminal, and one PTY is opened", async () => {
    const work = Promise.all(Array.from({ length: 200 }, () => opened("shared")));
    await neverMorePtysThanListed(work);
    const answers = await work;
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(new Set(answers.map(({ terminal }) => terminal.pid)).size).toBe(1);
    expect(new Set(answers.map(({ terminal }) => terminal.createdAt)).size).toBe(1);
    expect(livePtys(agent)).toBe(1);
    expect(await listTerminals(agent)).toHaveLength(1);
  });

  test("[L10] a delete during a create waits for it: nothing is left, or a complete new terminal", async () => {
    for (let round = 0; round < (tree === "cgroup" ? 30 : 6); round++) {
      const [made, ended] = await Promise.all([opened("both"), endTerminal(agent, "both")]);
      expect(made.status).toBe(201);
      expect([200, 404]).toContain(ended);
      // If the delete came first and found nothing, the terminal exists, and the next delete ends it.
      const listed = (await listTerminals(agent)).length;
      expect(listed).toBe(ended === 404 ? 1 : 0);
      expect(livePtys(agent)).toBe(listed);
      if (listed === 1) expect(await endTerminal(agent, "both")).toBe(200);
    }
    // The create has reached the agent before the delete is sent.
    const creating = opened("both");
    await until("it is listed", async () => (await listTerminals(agent)).length === 1);
    expect(await endTerminal(agent, "both")).toBe(200);
    expect((await creating).status).toBe(201);
    expect(await endTerminal(agent, "both")).toBe(404);
  });

  test("[L10] an exit frees the id: the next call makes a new terminal", async () => {
    const first = await opened("again", { argv: script("read line; echo so $line; exit 4") });
    const viewer = await Viewer.open(agent, "again");
    viewer.type("it was\r");
    await viewer.ended();
    expect(viewer.text).toContain("so it was");
    expect(await isGone(agent, "again")).toBe(true);
    expect(livePtys(agent)).toBe(0);
    const second = await opened("again");
    expect(second.status).toBe(201);
    expect(second.terminal.pid).not.toBe(first.terminal.pid);
    expect(second.terminal.offset).toBe(0);
    // A terminal that is just ending is waited for: nobody gets one that is about to end.
    const [ended, third] = await Promise.all([endTerminal(agent, "again"), opened("again")]);
    expect(ended).toBe(200);
    const isSame = third.terminal.pid === second.terminal.pid;
    expect(third.status).toBe(isSame ? 200 : 201);
    expect(await isGone(agent, "again")).toBe(isSame);
  });

  test("[L10] a terminal that cannot start is refused, and leaves no PTY and no id", async () => {
    await agent.sh(
      "echo 'no program' > plain; printf '#!/no/such/shell\\n' > orphan; chmod +x orphan; mkdir folder",
    );
    const descriptors = agent.descriptors();
    for (const program of ["no-such-program", "./plain", "./orphan", "./folder", "/etc/passwd"]) {
      const answers = await Promise.all(
        Array.from({ length: 5 }, () => refused({ id: "never", argv: [program] })),
      );
      for (const { status, error } of answers) {
        expect({ status, code: error.code }).toEqual({ status: 400, code: "bad_request" });
        expect(error).toMatchObject({ field: "argv" });
      }
    }
    const cwd = await refused({ id: "never", cwd: "/no/such/folder" });
    expect(cwd).toMatchObject({ status: 400, error: { code: "bad_cwd" } });
    expect(await isGone(agent, "never")).toBe(true);
    expect(await listTerminals(agent)).toEqual([]);
    expect(livePtys(agent)).toBe(0);
    await until("descriptors are back", () => agent.descriptors() <= descriptors);
  });

  test("[L11] a socket to an unknown terminal is 404 before the upgrade, and makes none", async () => {
    await expect(Viewer.open(agent, "unknown")).rejects.toThrow(/^HTTP\/1.1 404 /);
    expect(await listTerminals(agent)).toEqual([]);
    await opened("known");
    const plain = await agent.request("/v1/terminals/known/connect");
    expect(plain.status).toBe(426);
    expect(errorBodySchema.parse(await plain.json()).error.code).toBe("upgrade_required");
    for (const query of ["after=x", "after=-1", "mode=other", "more=1"]) {
      const upgrade = { upgrade: "websocket" };
      const path = `/v1/terminals/known/connect?${query}`;
      const answer = await agent.request(path, { headers: upgrade }).catch(() => undefined);
      // The runtime's own client may refuse to request an upgrade.
      if (answer !== undefined) expect([400, 426]).toContain(answer.status);
    }
    expect((await terminalNow(agent, "known")).viewers).toBe(0);
  });

  test("[T3] fifty terminals opened and ended in any order leave descriptors as they were", async () => {
    await opened("warm");
    await endTerminal(agent, "warm");
    const descriptors = agent.descriptors();
    const ids = Array.from({ length: 50 }, (_, n) => `t${n}`);
    const shuffled = (list: string[]) =>
      list.map((id) => ({ id, key: Math.random() })).sort((a, b) => a.key - b.key);
    const open = Promise.all(shuffled(ids).map(({ id }) => opened(id)));
    await neverMorePtysThanListed(open);
    expect(livePtys(agent)).toBe(50);
    const viewers = await Promise.all(ids.map((id) => Viewer.open(agent, id)));
    const half = shuffled(ids);
    for (const [n, { id }] of half.entries()) {
      if (n % 2 === 0) viewers[ids.indexOf(id)]?.type("\x04");
    }
    const ends = half.map(({ id }) => endTerminal(agent, id));
    await neverMorePtysThanListed(Promise.all([...ends, opened("one-more")]));
    for (const viewer of viewers) {
      await viewer.ended();
      expect(viewer.closed?.code).toBe(1000);
    }
    await endTerminal(agent, "one-more");
    expect(await listTerminals(agent)).toEqual([]);
    expect(livePtys(agent)).toBe(0);
    await until("descriptors are back", () => agent.descriptors() <= descriptors);
  });

  test("[T4] a terminal counts below the fence, and no more than the limit are open", async () => {
    const own = await Agent.start({ tree });
    const openWith = (fence: number, id: string) =>
      postTerminal(own, { id, ...quiet }, { "berth-fence": String(fence) });
    expect((await openWith(5, "first")).status).toBe(201);
    const stale = await openWith(4, "second");
    expect(stale.status).toBe(409);
    expect(errorBodySchema.parse(await stale.json()).error.code).toBe("stale_fence");
    expect((await listTerminals(own)).map(({ id }) => id)).toEqual(["first"]);
    for (let n = 1; n < limits.terminalsMax; n++)
      expect((await openWith(5, `t${n}`)).status).toBe(201);
    const full = await openWith(5, "beyond");
    expect(full.status).toBe(429);
    expect(errorBodySchema.parse(await full.json()).error.code).toBe("too_many");
    expect((await openWith(5, "first")).status).toBe(200);
    expect(livePtys(own)).toBe(limits.terminalsMax);
    // The end of the agent ends them all.
    await own.stop();
  });

  test("[T4] terminals, viewers and exits are part of the reported work", async () => {
    const work = async (after = 0) => {
      const response = await agent.request(`/v1/work?after=${after}`);
      return agentWorkSchema.parse(await response.json());
    };
    const before = (await work()).endings.at(-1)?.n ?? 0;
    await openTerminal(agent, { id: "exits", argv: script("read x; exit 9") });
    await openTerminal(agent, { id: "killed", argv: script("read x") });
    await until("nothing else runs", async () => (await work()).idleMs > 0);
    const viewer = await Viewer.open(agent, "exits");
    await viewer.frame("ready");
    expect(await work()).toMatchObject({ terminals: 2, attached: 1, idleMs: 0 });
    viewer.type("\r");
    await viewer.ended();
    await endTerminal(agent, "killed");
    await until("nothing is attached", async () => (await work()).attached === 0);
    const after = await work(before);
    expect(after.terminals).toBe(0);
    expect(after.idleMs).toBeGreaterThan(0);
    expect(after.endings).toMatchObject([
      { kind: "terminal", id: "exits", exitCode: 9, signal: null, reason: "exited" },
      { kind: "terminal", id: "killed", reason: "ended" },
    ]);
  });
});
