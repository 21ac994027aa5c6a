/** What the handles of the SDK share: how they send requests and open WebSockets. */
import type { Clock } from "./http/http-client.ts";
import type { HttpClient } from "./http/request.ts";
import type { SandboxTarget, WebSocketConstructor } from "./terminal/sockets.ts";

/** How Berth is reached. */
export type Connection = {
  client: HttpClient;
  /** The address of Berth. */
  url: string;
  clock: Clock;
  /** Undefined: that of the platform, if it has one. */
  WebSocket: WebSocketConstructor | undefined;
};

/** How one sandbox is reached. */
export type Target = SandboxTarget & { clock: Clock };
