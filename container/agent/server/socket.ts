/** Dispatches the events of all WebSockets of the agent to the handler that each socket carries, and keeps each alive. */
import { Keepalive } from "./keepalive.ts";

export type AgentServer = Bun.Server<AgentSocket>;

export interface AgentSocket {
  open(socket: Bun.ServerWebSocket<AgentSocket>): void;
  message(socket: Bun.ServerWebSocket<AgentSocket>, message: string | Buffer): void;
  /** The socket's send buffer is empty again. */
  drain?(socket: Bun.ServerWebSocket<AgentSocket>): void;
  close(socket: Bun.ServerWebSocket<AgentSocket>, code: number, reason: string): void;
}

const bufferedBytesMax = 16 * 1024 * 1024;

const keepaliveOf = new WeakMap<AgentSocket, Keepalive>();

export const socketHandler: Bun.WebSocketHandler<AgentSocket> = {
  maxPayloadLength: bufferedBytesMax,
  backpressureLimit: bufferedBytesMax,
  closeOnBackpressureLimit: true,
  perMessageDeflate: false,
  // Bun pings only idle sockets, and every ping of ours would postpone its idle limit.
  sendPings: false,
  open(socket) {
    keepaliveOf.set(socket.data, new Keepalive(socket));
    socket.data.open(socket);
  },
  message(socket, message) {
    keepaliveOf.get(socket.data)?.touch();
    socket.data.message(socket, message);
  },
  ping: (socket) => keepaliveOf.get(socket.data)?.touch(),
  pong: (socket) => keepaliveOf.get(socket.data)?.touch(),
  drain(socket) {
    keepaliveOf.get(socket.data)?.touch();
    socket.data.drain?.(socket);
  },
  close(socket, code, reason) {
    keepaliveOf.get(socket.data)?.stop();
    socket.data.close(socket, code, reason);
  },
};
