/**
 * Owns that each call ends within the limit, with an answer or an error of the table that is no fault of ours.
 */
import { faultCodes } from "../harness.ts";
import type { Check } from "./check.ts";

export const nothingHangs: Check = ({ calls }) =>
  calls.flatMap(({ client, verb, box, outcome }) =>
    outcome === undefined || outcome === "hung"
      ? [`${verb} of ${client} on ${box} has no end`]
      : [],
  );

export const failuresAreTyped: Check = ({ calls }) =>
  calls.flatMap(({ client, verb, box, code, detail }) =>
    code !== undefined && faultCodes.has(code)
      ? [`${verb} of ${client} on ${box} failed with ${code}: ${detail ?? ""}`]
      : [],
  );
