/**
 * Owns the list of the agent's parts: which noun answers below which path.
 */
import type { Part } from "./part.ts";
import type { Ground } from "./sandbox.ts";

export function partsOf(_ground: Ground): Map<string, Part> {
  return new Map();
}
