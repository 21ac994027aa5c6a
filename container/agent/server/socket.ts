/**
 * Owns the one handler of all WebSockets of the agent: each brings its own ears along, and has a pulse (pulse.ts).
 * Does not own what they are about: servers in the sandbox (ports/), terminals.
 */
import { Pulse } from "./keepalive.ts";

export interface AgentSocket {
  open(socket: Bun.ServerWebSocket<AgentSocket>): void;
  message(socket: Bun.ServerWebSocket<AgentSocket>, message: string | Buffer): void;
  /** What waited in the socket has gone out. */
  drain?(socket: Bun.ServerWebSocket<AgentSocket>): void;
  close(socket: Bun.ServerWebSocket<AgentSocket>, code: number, reason: string): void;
}

const bufferedBytesMax = 16 * 1024 * 1024;

const pulses = new WeakMap<AgentSocket, Pulse>();

export const socketHandler: Bun.WebSocketHandler<AgentSocket> = {
  maxPayloadLength: bufferedBytesMax,
  backpressureLimit: bufferedBytesMax,
  closeOnBackpressureLimit: true,
  perMessageDeflate: false,
  // Bun's own come only where nothing is sent; its limit of idleness is put off by each of ours.
  sendPings: false,
  open(socket) {
    pulses.set(socket.data, new Pulse(socket));
    socket.data.open(socket);
  },
  message(socket, message) {
    pulses.get(socket.data)?.heard();
    socket.data.message(socket, message);
  },
  ping: (socket) => pulses.get(socket.data)?.heard(),
  pong: (socket) => pulses.get(socket.data)?.heard(),
  drain(socket) {
    pulses.get(socket.data)?.heard();
    socket.data.drain?.(socket);
  },
  close(socket, code, reason) {
    pulses.get(socket.data)?.stop();
    socket.data.close(socket, code, reason);
  },
};
