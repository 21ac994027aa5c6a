/**
 * Owns the one handler of all WebSockets of the agent: each brings its own ears along.
 * Does not own what they are about: servers in the sandbox (ports/), terminals.
 */

export interface AgentSocket {
  open(socket: Bun.ServerWebSocket<AgentSocket>): void;
  message(socket: Bun.ServerWebSocket<AgentSocket>, message: string | Buffer): void;
  /** What waited in the socket has gone out. */
  drain?(socket: Bun.ServerWebSocket<AgentSocket>): void;
  close(socket: Bun.ServerWebSocket<AgentSocket>, code: number, reason: string): void;
}

const bufferedBytesMax = 16 * 1024 * 1024;

export const socketHandler: Bun.WebSocketHandler<AgentSocket> = {
  maxPayloadLength: bufferedBytesMax,
  backpressureLimit: bufferedBytesMax,
  closeOnBackpressureLimit: true,
  perMessageDeflate: false,
  open: (socket) => socket.data.open(socket),
  message: (socket, message) => socket.data.message(socket, message),
  drain: (socket) => socket.data.drain?.(socket),
  close: (socket, code, reason) => socket.data.close(socket, code, reason),
};
