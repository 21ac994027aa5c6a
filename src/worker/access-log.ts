/** Writes a line for each call if the operator wants it: who called which verb of which sandbox, and how it ended. */
import { isConfigured, readConfig } from "../config.ts";
import type { Caller } from "../protocol/rights.ts";
import type { VerbName } from "../protocol/verbs.ts";
import type { ApiContext } from "./http/context.ts";

/** A longer command is cut. */
const commandCharsMax = 200;

export function logCall(c: ApiContext, verb: VerbName, status: number, ms: number): void {
  if (!isConfigured(c.env)) return;
  const { accessLog } = readConfig(c.env);
  if (accessLog === "off") return;
  const { tenant, key, keyId, token } = (c.get("caller") ?? {}) as Partial<Caller>;
  const command = accessLog === "commands" ? c.get("command") : undefined;
  // Never a header, a query or a body: they hold keys, tokens and environments.
  console.log(
    JSON.stringify({
      ...{ at: new Date().toISOString(), call: verb, status, ms: Math.round(ms) },
      ...{ tenant, key, keyId, byToken: token !== undefined || undefined },
      ...{ sandbox: c.req.param("id"), requestId: c.get("requestId"), command },
    }),
  );
}

/** What a call runs, in one line. Its environment and input are left out. */
export function commandText(body: unknown): string | undefined {
  const { command, argv } = (body ?? {}) as { command?: unknown; argv?: unknown };
  const text = Array.isArray(argv) ? argv.join(" ") : command;
  return typeof text === "string" ? text.slice(0, commandCharsMax) : undefined;
}
