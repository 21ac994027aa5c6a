/**
 * Owns the form of a check: from what was recorded and what is there in the end follows what was broken, in words.
 */
import type { History } from "../history.ts";
import type { Truth } from "../truth.ts";

export type Check = (history: History, truth: Truth) => string[];
