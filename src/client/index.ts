/**
 * Owns what the SDK offers to those who import it; nothing else.
 */

export type * from "../protocol/api.ts";
export { BerthError, type ErrorCode, type ErrorFacts, errors } from "../protocol/error-codes.ts";
export type { CallOptions } from "./call.ts";
export { type Berth, type ConnectOptions, connect } from "./connect.ts";
export type { HeldLease, HoldOptions } from "./lease.ts";
export type { Clock, Fetch } from "./link.ts";
export type { LiveVerbs } from "./live.ts";
export type { FollowOptions, LogEvent } from "./live-logs.ts";
export type { AttachOptions, LiveTerminal, TerminalEvent } from "./live-terminal.ts";
export type { RetryPolicy } from "./retry.ts";
export type { SandboxHandle, WaitOptions } from "./sandbox.ts";
export type { Progress, TellProgress, UploadContent } from "./upload.ts";
