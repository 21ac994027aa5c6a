/**
 * Owns the form of a part of the agent: a noun with routes of its own below one path.
 * Does not own any of them; parts.ts lists them.
 */
import type { AgentServer } from "./server.ts";

export type PartCall = {
  request: Request;
  url: URL;
  /** What follows the part's own path, decoded by nobody: ids are plain. */
  rest: string[];
  server: AgentServer;
  requestId: string;
  incarnation: string;
  /** What an answer that becomes a WebSocket must carry itself. */
  answerHeaders: Record<string, string>;
};

export interface Part {
  /** Undefined: the connection became a WebSocket. */
  answer(call: PartCall): Promise<Response | undefined> | Response;
  /** What it has now. */
  readonly count: number;
  /** Sockets that are attached to it. */
  readonly attached?: number;
  /** TERM, then KILL; resolves when nothing of it is left or cannot be ended. */
  endAll(): Promise<void>;
}
