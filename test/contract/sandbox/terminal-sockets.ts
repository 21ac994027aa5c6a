/**
 * Owns what callers are promised of the WebSocket of a terminal: bytes, and frames for those who ask for them.
 */
import { describe, expect } from "vitest";
import {
  type FromTerminal,
  terminalProtocol,
} from "../../../src/protocol/internal/terminal-frames.ts";
import { made, type Socket, saying, soon, type World } from "./world.ts";

export function terminalSocketContract(world: World): void {
  const says = saying(world, "sockets");
  const bytes = ({ received }: Socket) =>
    received.map((one) => ("bytes" in one ? one.bytes : "")).join("");
  const frames = ({ received }: Socket) =>
    received.flatMap((one) => ("frame" in one ? [JSON.parse(one.frame) as FromTerminal] : []));
  const shows = (socket: Socket, text: string) =>
    soon(async () => expect(bytes(socket)).toContain(text));

  describe("the WebSocket of a terminal", () => {
    says("[Y48] carries what is typed and what is shown, without any protocol", async () => {
      const { id, box } = await made(world);
      await box.createTerminal({ id: "main", argv: ["cat"] });
      const socket = await world.connect(id, "main", "");
      socket.send("hello\r");
      await shows(socket, "hello\r\nhello\r\n");
      socket.send(new TextEncoder().encode("wörld\r"));
      await soon(async () =>
        expect((await box.terminalScreen("main")).text).toContain("wörld\nwörld"),
      );
      expect((await box.terminal("main")).viewers).toBe(1);
      const second = await world.connect(id, "main", "");
      await shows(second, "hello");
      expect(frames(second)).toEqual([]);
      second.close();
      socket.close();
      await soon(async () => expect((await box.terminal("main")).viewers).toBe(0));
    });

    says("[Y48] tells offsets, sizes and the exit to those who speak its frames", async () => {
      const { id, box } = await made(world);
      await box.createTerminal({ id: "main", argv: ["cat"] });
      const one = await world.connect(id, "main", "", terminalProtocol);
      const two = await world.connect(id, "main", "", terminalProtocol);
      await soon(async () => expect(frames(two).length).toBeGreaterThan(0));
      await soon(async () =>
        expect(frames(one)[0]).toEqual({ type: "ready", offset: 0, cols: 80, rows: 24 }),
      );
      one.send(new TextEncoder().encode("abc\r"));
      await shows(one, "abc\r\nabc\r\n");
      one.send(JSON.stringify({ type: "ack", offset: 10 }));
      one.send(JSON.stringify({ type: "resize", cols: 100, rows: 30 }));
      await soon(async () =>
        expect(frames(two)).toContainEqual({ type: "resize", cols: 100, rows: 30 }),
      );
      expect(await box.terminal("main")).toMatchObject({ cols: 100, rows: 30, offset: 10 });
      one.send(new TextEncoder().encode("\u0004"));
      for (const socket of [one, two]) {
        await soon(async () => expect(socket.closed).toBe(1000));
        expect(frames(socket).at(-1)).toEqual({ type: "exit", exitCode: 0, signal: null });
      }
      await soon(async () => expect((await box.terminals()).terminals).toEqual([]));
    });

    says("[Y48] goes on after an offset, without loss or repeat", async () => {
      const { id, box } = await made(world);
      await box.createTerminal({ id: "main", argv: ["cat"] });
      const first = await world.connect(id, "main", "", terminalProtocol);
      first.send(new TextEncoder().encode("abc\r"));
      await shows(first, "abc\r\nabc\r\n");
      first.close();
      const again = await world.connect(id, "main", "after=5", terminalProtocol);
      await soon(async () => expect(bytes(again)).toBe("abc\r\n"));
      expect(frames(again)).toEqual([{ type: "ready", offset: 5, cols: 80, rows: 24 }]);
      again.close();
    });

    says("[Y48] lets one who only watches change nothing", async () => {
      const { id, box } = await made(world);
      await box.createTerminal({ id: "main", argv: ["cat"] });
      const watcher = await world.connect(id, "main", "mode=viewer", terminalProtocol);
      const writer = await world.connect(id, "main", "");
      watcher.send(new TextEncoder().encode("from the watcher\r"));
      watcher.send(JSON.stringify({ type: "resize", cols: 50, rows: 10 }));
      await soon(async () =>
        expect(frames(watcher)).toContainEqual(expect.objectContaining({ type: "error" })),
      );
      writer.send("from the writer\r");
      await shows(watcher, "from the writer\r\nfrom the writer\r\n");
      expect(bytes(watcher)).not.toContain("watcher");
      expect(await box.terminal("main")).toMatchObject({ cols: 80, rows: 24 });
      for (const socket of [watcher, writer]) socket.close();
    });

    says("[Y47] makes no terminal: for one that is not there it is refused", async () => {
      const { id, box } = await made(world);
      await expect(world.connect(id, "main", "")).rejects.toThrow("404");
      expect((await box.terminals()).terminals).toEqual([]);
    });
  });
}
