import { describe, expect, test } from "vitest";
import { kinds } from "../agent.ts";
import { Viewer } from "./terminal-socket.ts";
import { endTerminal, isGone, livePtys, openTerminal, script, terminalAgent } from "./terminals.ts";

describe.each(kinds)("a terminal, trees held by %s", (tree) => {
  const agent = terminalAgent(tree);

  test("[T1] a program has a real terminal: tty, size, controlling terminal, foreground", async () => {
    const { pid } = await openTerminal(agent, {
      id: "real",
      cols: 91,
      rows: 27,
      argv: ["bash", "--norc"],
    });
    const viewer = await Viewer.open(agent, "real");
    await viewer.frame("ready");
    expect(livePtys(agent)).toBe(1);
    viewer.type("tty; stty size; ps -o pid=,tty=,stat=,comm= -p $$; echo by $TERM > /dev/tty\r");
    await viewer.shows("by xterm-256color\r\n");
    expect(viewer.text).toMatch(/\/dev\/pts\/\d+\r\n27 91\r\n/);
    expect(viewer.text).toMatch(new RegExp(`${pid} pts/\\d+ +S[<N]?s +bash`));
    viewer.type("grep flags /proc/self/fdinfo/[012]; echo flag''s\r");
    await viewer.shows("flags\r\n");
    expect(viewer.text.match(/flags:\s+0\d*2\r\n/g)).toHaveLength(3);
    viewer.type("exit 7\r");
    await viewer.ended();
    expect(viewer.closed?.code).toBe(1000);
    expect(viewer.exit).toEqual({ type: "exit", exitCode: 7, signal: null });
    expect(await isGone(agent, "real")).toBe(true);
  });

  test("[T1] job control and Ctrl-C are as in any terminal", async () => {
    await openTerminal(agent, { id: "jobs", argv: ["bash", "--norc"] });
    const viewer = await Viewer.open(agent, "jobs");
    await viewer.frame("ready");
    // It tells by itself that the terminal is its own: what is typed before that is the shell's.
    const job = `trap 'echo ba""ck' CONT; echo u""p; while :; do sleep 0.1; done`;
    viewer.type(`sh -c "${job.replaceAll('"', '\\"')}"\r`);
    await viewer.shows("up\r\n");
    viewer.type("\x1a");
    await viewer.shows("Stopped");
    viewer.type("fg\r");
    await viewer.shows("back\r\n");
    viewer.type("\x03");
    viewer.type("echo code $?\r");
    await viewer.shows("code 130");
    expect(await endTerminal(agent, "jobs")).toBe(200);
    await viewer.ended();
    expect(viewer.exit).toBeDefined();
  });

  test("[T2] what is written last before the exit reaches every viewer", async () => {
    await openTerminal(agent, {
      id: "last",
      argv: script("read go; seq 1 100000; echo the last; exit 3"),
    });
    const viewers = await Promise.all(
      [true, true, false].map((framed) => Viewer.open(agent, "last", { framed })),
    );
    viewers[0]?.type("\r");
    for (const viewer of viewers) {
      await viewer.ended();
      expect(viewer.closed?.code).toBe(1000);
      expect(viewer.text).toMatch(/99999\r\n100000\r\nthe last\r\n$/);
    }
    expect(viewers[0]?.exit).toEqual({ type: "exit", exitCode: 3, signal: null });
    expect(viewers[2]?.frames).toEqual([]);
  });
});
