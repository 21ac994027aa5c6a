/** What the modules of the agent share. See sandbox.ts for where it is created. */
import type { Activity, ExitEvents } from "./activity.ts";
import type { RunningCalls } from "./exec/running-calls.ts";
import type { SandboxEnv } from "./exec/sandbox-env.ts";
import type { MetadataCopy } from "./metadata-copy.ts";
import type { Meters } from "./metrics/meters.ts";
import type { GatedWork } from "./server/gated-work.ts";
import type { StoredResults } from "./server/stored-results.ts";
import type { TokenSockets } from "./server/token-sockets.ts";
import type { ProcessSupervisor } from "./supervision/process-tree.ts";

export type SandboxDeps = {
  sandboxEnv: SandboxEnv;
  supervisor: ProcessSupervisor;
  gated: GatedWork;
  activity: Activity;
  tokenSockets: TokenSockets;
  exitEvents: ExitEvents;
  storedResults: StoredResults;
  runningCalls: RunningCalls;
  metadataCopy: MetadataCopy;
  meters: Meters;
};
