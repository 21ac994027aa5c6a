/** The contract of terminals: get or create, size, screen, end. See terminal-sockets.ts for sockets. */
import { describe, expect, it } from "vitest";
import { createSandbox, eventually, refusal, refusals, type World } from "./world.ts";

export function terminalContract(world: World): void {
  const waits = { argv: ["sh", "-c", "stty size; sleep 60"] };

  describe("a terminal", () => {
    it("[Y46] is created once for an id, however many request it at once", async () => {
      const { box } = await createSandbox(world);
      const call = { id: "main", ...waits };
      const answers = await Promise.all(Array.from({ length: 20 }, () => box.createTerminal(call)));
      expect(new Set(answers.map(({ pid }) => pid)).size).toBe(1);
      expect(answers[0]).toMatchObject({ id: "main", cols: 80, rows: 24, viewers: 0 });
      expect(answers[0]?.argv).toEqual(waits.argv);
      expect((await box.terminals()).terminals.map(({ id }) => id)).toEqual(["main"]);
      const other = await box.createTerminal({ ...waits, cols: 100, rows: 30 });
      expect(other.pid).not.toBe(answers[0]?.pid);
      expect((await box.terminals()).terminals).toHaveLength(2);
      expect(await box.terminal(other.id)).toMatchObject({ cols: 100, rows: 30 });
    });

    it("[Y46] has a size that its program sees, and a screen that can be read", async () => {
      const { box } = await createSandbox(world);
      const { id } = await box.createTerminal({ ...waits, cols: 90, rows: 20 });
      await eventually(async () => expect((await box.terminal(id)).offset).toBeGreaterThan(5));
      const screen = await box.terminalScreen(id);
      expect(screen).toMatchObject({ cols: 90, rows: 20, alternate: false });
      expect(screen.text.trimEnd()).toBe("20 90");
      expect(screen.offset).toBe((await box.terminal(id)).offset);
      expect(await box.resizeTerminal(id, { cols: 120, rows: 40 })).toMatchObject({
        id,
        cols: 120,
        rows: 40,
      });
      expect(await box.terminal(id)).toMatchObject({ cols: 120, rows: 40 });
    });

    it("[T20] takes bytes that a call types", async () => {
      const { box } = await createSandbox(world);
      const { id } = await box.createTerminal({ argv: ["cat"] });
      const typed = await box.writeTerminal(id, new TextEncoder().encode("hello\n"));
      expect(typed.id).toBe(id);
      const screen = async () => (await box.terminalScreen(id)).text;
      await eventually(async () => expect(await screen()).toContain("hello\nhello"));
      await box.endTerminal(id);
      const call = box.writeTerminal(id, new Uint8Array(1));
      expect((await refusal(call)).code).toBe("not_found");
    });

    it("[Y46] runs a shell by default", async () => {
      const { box } = await createSandbox(world);
      const { id, argv } = await box.createTerminal();
      expect(argv).toEqual(["bash", "-l"]);
      await eventually(async () => expect((await box.terminalScreen(id)).text).toContain("$"));
      expect(await box.endTerminal(id)).toEqual({ id, ended: true });
    });

    it("[Y47] frees its id when it is ended or its program exits", async () => {
      const { box } = await createSandbox(world);
      const call = { id: "main", ...waits };
      const first = await box.createTerminal(call);
      expect(await box.endTerminal("main")).toEqual({ id: "main", ended: true });
      expect((await refusal(box.terminal("main"))).code).toBe("not_found");
      const second = await box.createTerminal({ id: "main", argv: ["sh", "-c", "exit 3"] });
      expect(second.pid).not.toBe(first.pid);
      await eventually(async () => expect((await box.terminals()).terminals).toEqual([]));
      expect((await box.createTerminal(call)).id).toBe("main");
      expect((await box.terminals()).terminals).toHaveLength(1);
    });

    it("[Y47] is not created by a read", async () => {
      const { box } = await createSandbox(world);
      const calls = [
        box.terminal("main"),
        box.terminalScreen("main"),
        box.resizeTerminal("main", { cols: 80, rows: 24 }),
        box.endTerminal("main"),
      ];
      for (const { code } of await refusals(calls)) expect(code).toBe("not_found");
      expect((await refusal(box.createTerminal({ cwd: "/no/such" }))).code).toBe("bad_cwd");
      expect((await box.terminals()).terminals).toEqual([]);
    });
  });
}
