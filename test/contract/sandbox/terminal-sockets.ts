/** The contract of the WebSocket of a terminal: bytes, and frames on request. */
import { describe, expect } from "vitest";
import {
  type FromTerminal,
  terminalProtocol,
} from "../../../src/protocol/internal/terminal-frames.ts";
import { createSandbox, eventually, itWith, type Socket, type World } from "./world.ts";

export function terminalSocketContract(world: World): void {
  const says = itWith(world, "sockets");
  const bytes = ({ received }: Socket) =>
    received.map((message) => ("bytes" in message ? message.bytes : "")).join("");
  const frames = ({ received }: Socket) =>
    received.flatMap((message) =>
      "frame" in message ? [JSON.parse(message.frame) as FromTerminal] : [],
    );
  const shows = (socket: Socket, text: string) =>
    eventually(async () => expect(bytes(socket)).toContain(text));

  describe("the WebSocket of a terminal", () => {
    says("[Y48] carries input and output without a subprotocol", async () => {
      const { id, box } = await createSandbox(world);
      await box.createTerminal({ id: "main", argv: ["cat"] });
      const socket = await world.connect(id, "main", "");
      socket.send("hello\r");
      await shows(socket, "hello\r\nhello\r\n");
      socket.send(new TextEncoder().encode("wörld\r"));
      await eventually(async () =>
        expect((await box.terminalScreen("main")).text).toContain("wörld\nwörld"),
      );
      expect((await box.terminal("main")).viewers).toBe(1);
      const second = await world.connect(id, "main", "");
      await shows(second, "hello");
      expect(frames(second)).toEqual([]);
      second.close();
      socket.close();
      await eventually(async () => expect((await box.terminal("main")).viewers).toBe(0));
    });

    says("[Y48] reports offsets, sizes and the exit in frames", async () => {
      const { id, box } = await createSandbox(world);
      await box.createTerminal({ id: "main", argv: ["cat"] });
      const viewer = await world.connect(id, "main", "", terminalProtocol);
      const two = await world.connect(id, "main", "", terminalProtocol);
      await eventually(async () => expect(frames(two).length).toBeGreaterThan(0));
      await eventually(async () =>
        expect(frames(viewer)[0]).toEqual({ type: "ready", offset: 0, cols: 80, rows: 24 }),
      );
      viewer.send(new TextEncoder().encode("abc\r"));
      await shows(viewer, "abc\r\nabc\r\n");
      viewer.send(JSON.stringify({ type: "ack", offset: 10 }));
      viewer.send(JSON.stringify({ type: "resize", cols: 100, rows: 30 }));
      await eventually(async () =>
        expect(frames(two)).toContainEqual({ type: "resize", cols: 100, rows: 30 }),
      );
      expect(await box.terminal("main")).toMatchObject({ cols: 100, rows: 30, offset: 10 });
      viewer.send(new TextEncoder().encode("\u0004"));
      for (const socket of [viewer, two]) {
        await eventually(async () => expect(socket.closed).toBe(1000));
        expect(frames(socket).at(-1)).toEqual({ type: "exit", exitCode: 0, signal: null });
      }
      await eventually(async () => expect((await box.terminals()).terminals).toEqual([]));
    });

    says("[Y48] resumes after an offset, without loss or repeat", async () => {
      const { id, box } = await createSandbox(world);
      await box.createTerminal({ id: "main", argv: ["cat"] });
      const first = await world.connect(id, "main", "", terminalProtocol);
      first.send(new TextEncoder().encode("abc\r"));
      await shows(first, "abc\r\nabc\r\n");
      first.close();
      const resumed = await world.connect(id, "main", "after=5", terminalProtocol);
      await eventually(async () => expect(bytes(resumed)).toBe("abc\r\n"));
      expect(frames(resumed)).toEqual([{ type: "ready", offset: 5, cols: 80, rows: 24 }]);
      resumed.close();
    });

    says("[Y48] ignores input of a read-only viewer", async () => {
      const { id, box } = await createSandbox(world);
      await box.createTerminal({ id: "main", argv: ["cat"] });
      const watcher = await world.connect(id, "main", "mode=viewer", terminalProtocol);
      const writer = await world.connect(id, "main", "");
      watcher.send(new TextEncoder().encode("from the watcher\r"));
      watcher.send(JSON.stringify({ type: "resize", cols: 50, rows: 10 }));
      await eventually(async () =>
        expect(frames(watcher)).toContainEqual(expect.objectContaining({ type: "error" })),
      );
      writer.send("from the writer\r");
      await shows(watcher, "from the writer\r\nfrom the writer\r\n");
      expect(bytes(watcher)).not.toContain("watcher");
      expect(await box.terminal("main")).toMatchObject({ cols: 80, rows: 24 });
      for (const socket of [watcher, writer]) socket.close();
    });

    says("[Y47] creates no terminal: an unknown one is refused", async () => {
      const { id, box } = await createSandbox(world);
      await expect(world.connect(id, "main", "")).rejects.toThrow("404");
      expect((await box.terminals()).terminals).toEqual([]);
    });
  });
}
