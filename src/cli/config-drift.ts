/**
 * Warns when the configuration has changed since the sandbox was created. The sandbox continues to work with the old
 * one.
 */
import type { Sandbox } from "../protocol/sandbox.ts";
import type { FoundConfig } from "./checkout/config.ts";
import type { Output } from "./output/output.ts";
import type { LocalState } from "./state/local-state.ts";

/** Stands for a checkout without a configuration. */
const noHash = "none";

/** Warns once for each change. Returns whether the configurations differ. */
export function warnOfDrift(
  { id, client }: Sandbox,
  { file, hash }: FoundConfig,
  state: LocalState,
  output: Output,
): boolean {
  const differs = hash !== client?.configHash;
  const isNews = state.noteDrift(id, differs ? (hash ?? noHash) : undefined);
  if (differs && isNews) {
    const name = file ?? client?.configFile ?? "the configuration";
    output.warn(
      `\`${name}\` has changed since sandbox ${id} was created.`,
      "The sandbox keeps its old configuration. `berth reset` creates a new one.",
    );
  }
  return differs;
}
