/** What a sandbox needs from its host in addition to ObjectHost: a container and the tenant's Directory. */
import type { Report } from "../../protocol/directory.ts";
import type { Network } from "../../protocol/sandbox.ts";
import type { ContainerRuntime } from "../../runtime/runtime.ts";
import type { ObjectHost } from "../shared/host.ts";

export type { SqlValue } from "../shared/host.ts";

export interface Host extends ObjectHost {
  /** The clock shows at least this time, the newest that is stored, and runs on from there. */
  startClockAt(newestStored: number): void;
  /** Whether the wall clock is behind, so that a later instance would not count the time until then. */
  isClockAhead(): boolean;
  /** Which run of the server this is, on one machine; the containers of an earlier one have ended with it. */
  readonly serverRun?: string | undefined;
  openRuntime(id: string, network: Network): ContainerRuntime;
  /** Resolves when the tenant's Directory has stored the report. */
  sendReport(report: Report): Promise<void>;
}
