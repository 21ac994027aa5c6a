/**
 * Owns telling that a sandbox was made by another configuration than there is: it goes on working, as it was made.
 * Does not own the configuration, nor its hash (checkout/config.ts).
 */
import type { Sandbox } from "../protocol/sandbox.ts";
import type { FoundConfig } from "./checkout/config.ts";
import type { Output } from "./output/output.ts";
import type { Memory } from "./state/memory.ts";

/** Of a checkout without a configuration. */
const noHash = "none";

/** Says it once for each change; gives whether they differ. */
export function tellDrift(
  { id, client }: Sandbox,
  { file, hash }: FoundConfig,
  memory: Memory,
  output: Output,
): boolean {
  const differs = hash !== client?.configHash;
  const isNews = memory.noteDrift(id, differs ? (hash ?? noHash) : undefined);
  if (differs && isNews) {
    const name = file ?? client?.configFile ?? "the configuration";
    output.warn(
      `${name} has changed since sandbox ${id} was made`,
      "`berth reset` makes a new one; until then it goes on as it was made.",
    );
  }
  return differs;
}
