/**
 * Owns reading the calls of terminals by hand: create, resize, connect.
 * Does not own their form: src/protocol/terminal.ts; a test holds these readings and the schemas together.
 */

import { handlePattern, handleWords } from "../../../src/protocol/fields/handle.ts";
import type { AgentTerminalCall } from "../../../src/protocol/internal/agent.ts";
import type { TerminalSize } from "../../../src/protocol/terminal.ts";
import { argvOf, cwdOf, demandFit, envOf } from "../exec/command-call.ts";
import { callOf, refuse, textOf, wholeOf } from "../server/fields.ts";
import { sizeOf } from "./frames.ts";

const usual: TerminalSize = { cols: 80, rows: 24 };

const callFields = ["id", "cols", "rows", "cwd", "env", "argv", "endsWithLease"];

export function readTerminalCall(value: unknown): AgentTerminalCall {
  const call = callOf(value, callFields);
  const { cols = usual.cols, rows = usual.rows } = call;
  const read: AgentTerminalCall = { id: idOf(call.id), ...sizeOf({ cols, rows }) };
  if (call.cwd !== undefined) read.cwd = cwdOf(call.cwd);
  if (call.env !== undefined) read.env = envOf(call.env);
  if (call.argv !== undefined) read.argv = argvOf(call.argv);
  const { endsWithLease } = call;
  if (endsWithLease !== undefined) {
    if (typeof endsWithLease !== "boolean") refuse("endsWithLease", "must be true or false");
    read.endsWithLease = endsWithLease;
  }
  demandFit({ ...(read.argv && { argv: read.argv }), ...(read.env && { env: read.env }) });
  return read;
}

export function readSize(value: unknown): TerminalSize {
  return sizeOf(callOf(value, ["cols", "rows"]));
}

export type Connect = { after?: number; mode: "writer" | "viewer" };

export function readConnect(query: URLSearchParams): Connect {
  const { after, mode = "writer" } = callOf(Object.fromEntries(query), ["after", "mode"]);
  if (mode !== "writer" && mode !== "viewer") refuse("mode", "must be writer or viewer");
  if (after === undefined) return { mode };
  const range = { min: 0, max: Number.MAX_SAFE_INTEGER };
  return { mode, after: wholeOf(String(after), "after", range) };
}

function idOf(value: unknown): string {
  const id = textOf(value, "id");
  if (!handlePattern.test(id)) refuse("id", handleWords);
  return id;
}
