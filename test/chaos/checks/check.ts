/**
 * The form of a check: compares history and final state and returns a description of each broken promise.
 */

import type { FinalState } from "../final-state.ts";
import type { History } from "../history.ts";

export type Check = (history: History, finalState: FinalState) => string[];
