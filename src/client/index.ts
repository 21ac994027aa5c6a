/** The public entry point of the SDK: what `import … from "@berth-sandbox/berth"` offers. */
import { Berth } from "./berth.ts";

export type { FileContent } from "../protocol/api.ts";
export type { Checkpoint } from "../protocol/checkpoint.ts";
export type { ListedSandbox } from "../protocol/directory.ts";
export { BerthError, type ErrorCode } from "../protocol/error-codes.ts";
export type { ExecInput, ExecResult } from "../protocol/exec.ts";
export type { FileView as FileInfo } from "../protocol/file.ts";
export type { LeaseView as LeaseInfo } from "../protocol/lease.ts";
export type { Commit } from "../protocol/plan.ts";
export type { Port } from "../protocol/port.ts";
export type { Process as ProcessInfo, ProcessInput } from "../protocol/process.ts";
export type { CreateInput, Sandbox as SandboxInfo } from "../protocol/sandbox.ts";
export type { Session as SessionInfo } from "../protocol/session.ts";
export type { Terminal as TerminalInfo } from "../protocol/terminal.ts";
export type { ListOptions } from "./berth.ts";
export type { ConnectOptions } from "./connect.ts";
export type { CallOptions, ChangeOptions, RepeatableOptions } from "./http/request.ts";
export type { UploadContent } from "./http/upload.ts";
export type { HeldLease, HoldOptions } from "./lease/lease.ts";
export type { Page } from "./page.ts";
export type { Plan } from "./plans.ts";
export type { ExecOptions } from "./sandbox/exec.ts";
export type { Process } from "./sandbox/processes.ts";
export type { Session } from "./sandbox/sessions.ts";
export type { Terminal } from "./sandbox/terminals.ts";
export type { Sandbox } from "./sandbox.ts";
export type { SandboxEvent, TenantEvent } from "./streams/events.ts";
export type { FileEvent } from "./streams/files.ts";
export type { LogEvent } from "./streams/logs.ts";
export type { LiveTerminal, TerminalEvent } from "./terminal/terminal.ts";
export { Berth };

/** The same as `Berth.connect`. */
export const connect = Berth.connect;
