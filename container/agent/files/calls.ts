/**
 * Owns reading the bodies of mkdir and move by hand. Does not own their form: src/protocol/file.ts.
 */
import type { MkdirCall, MoveCall } from "../../../src/protocol/file.ts";
import { callOf, refuse } from "../server/fields.ts";
import { modeOf, pathOf, sessionOf } from "./query.ts";

export function readMkdirCall(value: unknown): MkdirCall {
  const call = callOf(value, ["path", "session", "parents", "mode"]);
  return {
    path: pathOf(call.path, "path"),
    ...sessionIn(call),
    parents: booleanOf(call.parents, "parents"),
    ...(call.mode === undefined ? {} : { mode: modeOf(call.mode) }),
  };
}

export function readMoveCall(value: unknown): MoveCall {
  const call = callOf(value, ["from", "to", "session", "overwrite"]);
  return {
    from: pathOf(call.from, "from"),
    to: pathOf(call.to, "to"),
    ...sessionIn(call),
    overwrite: booleanOf(call.overwrite, "overwrite"),
  };
}

function sessionIn({ session }: Record<string, unknown>): { session?: string } {
  return session === undefined ? {} : { session: sessionOf(session) };
}

function booleanOf(value: unknown, field: string): boolean {
  if (value === undefined) return false;
  if (typeof value !== "boolean") refuse(field, "must be true or false");
  return value;
}
