/** Terminals in a jail: PTYs of its own devpts, opened by an agent without privileges for a user without any. */
import { beforeAll, describe, expect, it } from "vitest";
import { agentHeaders, agentPaths } from "../../src/protocol/internal/agent-wire.ts";
import { Viewer } from "../agent/terminals/terminal-socket.ts";
import { identities, type RunningSandbox, run, sharedEngine } from "./test-engine.ts";

describe.each(identities())("a terminal in a jail of an engine that is %s", (as) => {
  const engine = sharedEngine(as);
  let sandbox: RunningSandbox;
  let agent: { port: number; secret: string };

  beforeAll(async () => {
    sandbox = await run(engine);
    const { port } = new URL(sandbox.started.address);
    agent = { port: Number(port), secret: sandbox.secret };
  });

  const sh = async (command: string) => (await sandbox.sh(command)).stdout;
  const terminals = (method: string, path: string, body?: unknown) =>
    fetch(`${sandbox.started.address}${agentPaths.terminals}${path}`, {
      method,
      headers: { authorization: `Bearer ${agent.secret}`, [agentHeaders.fence]: "1" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });

  it("[T16] is a real terminal: owned by its user, on the jail's devpts, with job control and full-screen programs", async () => {
    const made = await terminals("POST", "", { id: "real", cols: 100, rows: 30 });
    expect(made.status, await made.clone().text()).toBe(201);
    expect(await made.json()).toMatchObject({ argv: ["bash", "-l"], cols: 100, rows: 30 });
    expect(await sh("ls /dev/pts")).toBe("0\nptmx\n");
    const viewer = await Viewer.open(agent, "real");
    await viewer.frame("ready");
    viewer.type("tty; stty size; stat -c 'of %U' $(tty); id -un; ps -o tty=,stat= -p $$\r");
    await viewer.shows(/\/dev\/pts\/0\r\n30 100\r\nof berth\r\nberth\r\npts\/0 +Ss\r\n/);
    // It prints when it owns the terminal; the shell would read what is typed earlier.
    viewer.type("sh -c 'echo u\"\"p; exec sleep 1000'\r");
    await viewer.shows("up\r\n");
    viewer.type("\x1a");
    await viewer.shows("Stopped");
    viewer.type("kill %1; seq 500 | less\r");
    await viewer.shows("\x1b[?1049h");
    viewer.type("q");
    await viewer.shows("\x1b[?1049l");
    viewer.type("exit 3\r");
    await viewer.ended();
    expect(viewer.exit).toMatchObject({ exitCode: 3 });
    expect((await terminals("GET", "/real")).status).toBe(404);
    expect(await sh("ls /dev/pts")).toBe("ptmx\n");
  });

  it("[T16] leaves nothing when it cannot start, and when it is ended", async () => {
    const refused = await terminals("POST", "", { id: "never", argv: ["/workspace/nothing"] });
    expect(refused.status).toBe(400);
    expect(await sh("ls /dev/pts")).toBe("ptmx\n");
    const ids = Array.from({ length: 10 }, (_, n) => `t${n}`);
    for (const id of ids) expect((await terminals("POST", "", { id })).status).toBe(201);
    expect((await sh("ls /dev/pts")).split("\n")).toHaveLength(12);
    const ended = await Promise.all(ids.map((id) => terminals("DELETE", `/${id}`)));
    expect(ended.map(({ status }) => status)).toEqual(ids.map(() => 200));
    expect(await sh("ls /dev/pts")).toBe("ptmx\n");
  });
});
