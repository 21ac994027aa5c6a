/**
 * Owns what a sandbox needs of the place it lives in, beyond what every object needs: its container, its Directory.
 */
import type { Container } from "../../container/container.ts";
import type { Report } from "../../protocol/directory.ts";
import type { Network } from "../../protocol/sandbox.ts";
import type { Place } from "../place.ts";

export type { SqlValue } from "../place.ts";

export interface Host extends Place {
  openContainer(id: string, network: Network): Container;
  /** Answers when the tenant's Directory has it. */
  tell(report: Report): Promise<void>;
}
