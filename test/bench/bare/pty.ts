/**
 * Owns the other side of the ratio of terminals: the least that brings a PTY over a local WebSocket. One program,
 * one socket, bytes in and out, nothing else. Run by Bun; prints its port; ends when its standard input does.
 */
type Line = { terminal?: Bun.Terminal };

const argv = Bun.argv.slice(2);

const server = Bun.serve<Line, string>({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request, at) {
    return at.upgrade(request, { data: {} }) ? undefined : new Response("no socket");
  },
  websocket: {
    open(socket) {
      const child = Bun.spawn(argv, {
        terminal: { cols: 80, rows: 24, data: (_, bytes) => void socket.sendBinary(bytes) },
      });
      if (child.terminal !== undefined) socket.data.terminal = child.terminal;
      child.exited.then(() => socket.close());
    },
    message(socket, bytes) {
      socket.data.terminal?.write(bytes);
    },
    close(socket) {
      socket.data.terminal?.close();
    },
  },
});

console.log(server.port);
for await (const _ of Bun.stdin.stream());
process.exit();
