/**
 * The public entry point of the SDK: what `import … from "berth"` offers.
 */

export type * from "../protocol/api.ts";
export type * from "../protocol/checkpoint.ts";
export type * from "../protocol/directory.ts";
export { BerthError, type ErrorCode, type ErrorFacts, errors } from "../protocol/error-codes.ts";
export type * from "../protocol/event.ts";
export type * from "../protocol/exec.ts";
export type * from "../protocol/file.ts";
export type * from "../protocol/file.ts";
export type * from "../protocol/lease.ts";
export type * from "../protocol/metadata.ts";
export type * from "../protocol/plan.ts";
export type * from "../protocol/port.ts";
export type * from "../protocol/process.ts";
export type { ConnectTicket, Right, Token } from "../protocol/rights.ts";
export type * from "../protocol/sandbox.ts";
export type * from "../protocol/session.ts";
export type * from "../protocol/terminal.ts";
export { type Berth, type ConnectOptions, connect } from "./connect.ts";
export type { Clock, Fetch } from "./http/http-client.ts";
export type { CallOptions } from "./http/request.ts";
export type { RetryPolicy } from "./http/retry.ts";
export type { Progress, TellProgress, UploadContent } from "./http/upload.ts";
export type { HeldLease, HoldOptions } from "./lease/lease.ts";
export type { LiveVerbs, SandboxHandle, WaitOptions } from "./sandbox.ts";
export type {
  EventGap,
  FollowEventsOptions,
  SandboxEvent,
  TenantEvent,
} from "./streams/events.ts";
export type { CloneOptions, FileEvent, WatchOptions } from "./streams/files.ts";
export type { FollowOptions, LogEvent } from "./streams/logs.ts";
export type { StreamOptions } from "./streams/stream.ts";
export type { AttachOptions, LiveTerminal, TerminalEvent } from "./terminal/terminal.ts";
