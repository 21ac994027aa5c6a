import { describe, expect, test } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { until } from "../../until.ts";
import { kinds } from "../agent.ts";
import { Viewer } from "./terminal-socket.ts";
import { endTerminal, openTerminal, script, terminalAgent, terminalNow } from "./terminals.ts";

/** Writes nothing of its own, and writes back what it reads byte for byte. */
const mirror = script("stty raw -echo; printf ready; exec cat");

describe.each(kinds)("the frames of a terminal, trees held by %s", (tree) => {
  const agent = terminalAgent(tree);

  const resize = (id: string, size: { cols: number; rows: number }) =>
    agent.request(`/v1/terminals/${id}`, { method: "PATCH", body: JSON.stringify(size) });
  const written = (id: string, offset: number) =>
    until(
      `${id} has written ${offset}`,
      async () => (await terminalNow(agent, id)).offset >= offset,
    );

  test("[T5] ready comes first, with the size and where output begins; each byte counts", async () => {
    await openTerminal(agent, { id: "t", cols: 100, rows: 30, argv: mirror });
    const first = await Viewer.open(agent, "t");
    expect(first.headers).toMatchObject({
      "sec-websocket-protocol": "berth.terminal.v1",
      "berth-incarnation": agent.incarnation,
    });
    await first.shows("ready");
    expect(first.frames[0]).toMatchObject({ type: "ready", cols: 100, rows: 30 });
    first.type(Buffer.from([0, 255, 128, 10, 13, 3, 4, 26]));
    await written("t", 13);
    await until("it came back", () => first.offset === 13);
    const all = Buffer.concat([...first.snapshots, ...first.output]);
    expect([...all.subarray(-8)]).toEqual([0, 255, 128, 10, 13, 3, 4, 26]);
  });

  test("[T5] with `after` the output continues at exactly that byte", async () => {
    await openTerminal(agent, { id: "t", argv: script("stty raw -echo; seq 1 50000; exec cat") });
    const bytes = Array.from({ length: 50_000 }, (_, n) => `${n + 1}\n`).join("");
    await written("t", bytes.length);
    for (const after of [0, 1, 77_777, bytes.length - 1, bytes.length]) {
      const viewer = await Viewer.open(agent, "t", { after });
      expect(await viewer.frame("ready")).toMatchObject({ offset: after });
      await until("all of it came", () => viewer.offset === bytes.length);
      expect(viewer.text).toBe(bytes.slice(after));
      expect(viewer.frames.map(({ type }) => type)).toEqual(["ready"]);
      await viewer.close();
    }
    await until("all have left", async () => (await terminalNow(agent, "t")).viewers === 0);
  });

  test("[T5] `after` of output that is no longer stored gives `truncated` and the screen, then continues", async () => {
    const lots = 3 * limits.terminalRingBytes;
    const command = `stty raw -echo; head -c ${lots} /dev/zero | tr '\\0' x; printf '\\r\\nthe end'; exec cat`;
    await openTerminal(agent, { id: "t", argv: script(command) });
    await written("t", lots + 9);
    for (const after of [0, 5, lots * 2]) {
      const viewer = await Viewer.open(agent, "t", { after });
      await until("a snapshot came", () => viewer.snapshots.length === 1);
      const offset = lots + 9;
      expect(viewer.frames.map(({ type }) => type)).toEqual(["ready", "truncated", "screen"]);
      expect(viewer.frames[1]).toEqual({ type: "truncated", offset });
      expect(viewer.frames[2]).toEqual({ type: "screen", offset });
      expect(viewer.snapshots.toString()).toContain("the end");
      viewer.type("more");
      await until("output continues", () => viewer.text === "more");
      viewer.type("\r");
      await viewer.close();
      await endTerminal(agent, "t");
      await openTerminal(agent, { id: "t", argv: script(command) });
      await written("t", lots + 9);
    }
  });

  test("[T6] without the subprotocol a viewer gets the screen, then bytes, and no text at all", async () => {
    await openTerminal(agent, { id: "t", argv: mirror });
    const early = await Viewer.open(agent, "t", { framed: false });
    await early.shows("ready");
    early.type("typed as bytes ");
    early.say("typed as text");
    await early.shows("typed as bytes typed as text");
    const late = await Viewer.open(agent, "t", { framed: false });
    await late.shows("typed as bytes typed as text");
    expect(late.text.startsWith("\x1bc")).toBe(true);
    expect([...early.frames, ...late.frames]).toEqual([]);
    expect(late.headers).not.toHaveProperty("sec-websocket-protocol");
  });

  test("[T7] a new size reaches the program and the other viewers, from a viewer and by a call", async () => {
    const loop = "trap 'stty size' WINCH; echo up; while :; do read -t 0.05 x; done";
    await openTerminal(agent, { id: "t", cols: 80, rows: 24, argv: script(loop) });
    const [one, two] = [await Viewer.open(agent, "t"), await Viewer.open(agent, "t")];
    const plain = await Viewer.open(agent, "t", { framed: false });
    await Promise.all([one, two, plain].map((viewer) => viewer.shows("up")));
    one.say({ type: "resize", cols: 132, rows: 43 });
    expect(await two.frame("resize")).toEqual({ type: "resize", cols: 132, rows: 43 });
    await plain.shows("43 132\r\n");
    expect(one.frames.some(({ type }) => type === "resize")).toBe(false);
    const patched = await resize("t", { cols: 99, rows: 9 });
    expect(await patched.json()).toMatchObject({ cols: 99, rows: 9 });
    await plain.shows("9 99\r\n");
    expect(await one.frame("resize")).toEqual({ type: "resize", cols: 99, rows: 9 });
    expect(await terminalNow(agent, "t")).toMatchObject({ cols: 99, rows: 9 });
  });

  test("[T8] a viewer that only watches cannot type or change the size, and gets one error", async () => {
    await openTerminal(agent, { id: "t", argv: mirror });
    const watcher = await Viewer.open(agent, "t", { mode: "viewer" });
    const mute = await Viewer.open(agent, "t", { mode: "viewer", framed: false });
    await watcher.shows("ready");
    watcher.type("no");
    watcher.say({ type: "resize", cols: 10, rows: 10 });
    watcher.type("no");
    mute.type("no");
    await watcher.frame("error");
    watcher.ack();
    const writer = await Viewer.open(agent, "t");
    writer.type("yes");
    for (const viewer of [watcher, mute, writer]) await viewer.shows(/ready.*yes$/s);
    expect(watcher.frames.filter(({ type }) => type === "error")).toHaveLength(1);
    expect(watcher.frames.at(-1)).toMatchObject({ type: "error", code: "forbidden" });
    expect(mute.frames).toEqual([]);
    expect(await terminalNow(agent, "t")).toMatchObject({ cols: 80, rows: 24, offset: 8 });
  });

  test("[T9] a malformed frame is answered by an error that names it, and the socket closed with 1008", async () => {
    await openTerminal(agent, { id: "t", argv: mirror });
    const bad: [string, string][] = [
      ["no json", "frame"],
      ["[]", "frame"],
      ["null", "frame"],
      ["{}", "type"],
      ['{"type":"input","data":"ls"}', "type"],
      ['{"type":"ready"}', "type"],
      ['{"type":"resize","cols":80}', "rows"],
      ['{"type":"resize","cols":0,"rows":5}', "cols"],
      ['{"type":"resize","cols":80,"rows":24,"offset":1}', "offset"],
      ['{"type":"ack"}', "offset"],
      ['{"type":"ack","offset":-1}', "offset"],
      ['{"type":"ack","offset":1000000}', "offset"],
      ['{"type":"ack","offset":0,"more":1}', "more"],
    ];
    for (const [text, field] of bad) {
      const viewer = await Viewer.open(agent, "t");
      await viewer.frame("ready");
      viewer.say(text);
      await viewer.ended();
      expect(viewer.closed?.code, text).toBe(1008);
      const error = viewer.frames.at(-1);
      expect(error, text).toMatchObject({ type: "error", code: "bad_request" });
      expect((error as { message: string }).message).toMatch(new RegExp(`^${field} `));
    }
    expect(await terminalNow(agent, "t")).toMatchObject({ cols: 80, rows: 24 });
  });

  test("[T9] more viewers than the limit are refused before the upgrade", async () => {
    await openTerminal(agent, { id: "t", argv: mirror });
    const open = () => Viewer.open(agent, "t");
    const viewers = await Promise.all(Array.from({ length: limits.terminalViewersMax }, open));
    await expect(open()).rejects.toThrow(/^HTTP\/1.1 429 /);
    expect((await terminalNow(agent, "t")).viewers).toBe(limits.terminalViewersMax);
    await viewers[0]?.close();
    await until(
      "one has left",
      async () => (await terminalNow(agent, "t")).viewers < viewers.length,
    );
    const next = await open();
    next.type("all see this");
    await Promise.all([...viewers.slice(1), next].map((viewer) => viewer.shows("all see this")));
  });

  test("[T10] a program that closes its terminal keeps running, and may open it again", async () => {
    const waitForFile = "until [ -e back ]; do sleep 0.02; done; rm back";
    const command = `exec 0<&- 1>&- 2>&-; ${waitForFile}; echo back again > /dev/tty; sleep 0.1; exit 6`;
    await openTerminal(agent, { id: "t", argv: script(command) });
    const viewer = await Viewer.open(agent, "t");
    await agent.sh("touch back");
    await viewer.ended();
    expect(viewer.shown).toContain("back again");
    expect(viewer.exit).toMatchObject({ exitCode: 6 });
  });

  test("[T10] a daemon that keeps the terminal open does not keep it alive after the exit", async () => {
    const daemon = "trap '' HUP TERM; while :; do sleep 0.05; echo still; touch said; done";
    const said = "until [ -e said ]; do sleep 0.02; done";
    const command = `read go; rm -f said; (setsid sh -c "${daemon}" &) ; ${said}; echo over; exit 5`;
    await openTerminal(agent, { id: "t", argv: script(command) });
    const viewer = await Viewer.open(agent, "t");
    viewer.type("\r");
    await viewer.ended();
    expect(viewer.text).toContain("over\r\n");
    expect(viewer.text).toContain("still\r\n");
    expect(viewer.exit).toMatchObject({ exitCode: 5 });
    expect(agent.left()).toEqual([]);
  });

  test("[T10] delete ends what ignores HUP and TERM, in sessions of its own too", async () => {
    const deaf = `trap '' HUP TERM; (setsid sh -c 'trap "" HUP TERM; echo out; while :; do sleep 1; done' &); while :; do sleep 1; done`;
    await openTerminal(agent, { id: "t", argv: script(deaf) });
    const viewer = await Viewer.open(agent, "t");
    await viewer.shows("out");
    expect(agent.left().length).toBeGreaterThanOrEqual(2);
    const begun = performance.now();
    expect(await endTerminal(agent, "t")).toBe(200);
    expect(performance.now() - begun).toBeGreaterThan(limits.execKillGraceMs - 100);
    expect(agent.left()).toEqual([]);
    await viewer.ended();
    expect(viewer.exit).toMatchObject({ exitCode: null, signal: "SIGKILL" });
  });
});
