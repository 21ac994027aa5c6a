/**
 * The baseline for terminals: the least code that serves a PTY over a local WebSocket. One program, one socket, bytes
 * in and out. Runs in Bun, prints its port, and ends when its stdin closes.
 */
type SocketData = { terminal?: Bun.Terminal };

const argv = Bun.argv.slice(2);

const server = Bun.serve<SocketData, string>({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request, server) {
    return server.upgrade(request, { data: {} }) ? undefined : new Response("no socket");
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
