/**
 * Owns what a sandbox needs of the place it lives in, beyond what every object needs: its container, its Directory.
 */

import type { Report } from "../../protocol/directory.ts";
import type { Network } from "../../protocol/sandbox.ts";
import type { Container } from "../../runtime/runtime.ts";
import type { Place } from "../shared/host.ts";

export type { SqlValue } from "../shared/host.ts";

export interface Host extends Place {
  openContainer(id: string, network: Network): Container;
  /** Answers when the tenant's Directory has it. */
  tell(report: Report): Promise<void>;
}
