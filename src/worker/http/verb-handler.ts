/** The HTTP handler of a verb, derived from its row: reads the request, calls the object, returns what it returned. */
import { readConfig } from "../../config.ts";
import type {
  AgentVerb,
  CallableVerb,
  VerbArgs,
} from "../../objects/sandbox/dispatch/verb-call.ts";
import type { Caller } from "../../protocol/rights.ts";
import { targetOf } from "../../protocol/verbs/arguments.ts";
import type { VerbRow } from "../../protocol/verbs/row.ts";
import { commandText } from "../access-log.ts";
import { readBody, readBytes } from "./body.ts";
import type { Handler } from "./context.ts";
import { gatedCaller, idempotentCaller } from "./headers.ts";
import { sandboxObject } from "./objects.ts";
import { readQuery } from "./query.ts";
import { toHttp } from "./responses.ts";
import { validateTarget } from "./target.ts";

export function verbHandler(name: CallableVerb, row: VerbRow): Handler {
  const target = targetOf(row);
  const isGated = row.gated === true;
  const gate = row.idempotent === true ? idempotentCaller : gatedCaller;
  const { query, body, bodyBytesMax = 0 } = row;
  return async (c) => {
    const id = c.req.param("id");
    const object = sandboxObject(c.env, id);
    const args: VerbArgs = isGated ? { gated: gate(c) } : {};
    if (target !== undefined) {
      args.target = validateTarget(target, id, c.req.param(target as never));
    }
    if (query !== undefined) args.query = readQuery(query, c.req.url, isGated);
    if (body === "bytes") args.body = await readBytes(c.req.raw, bodyBytesMax);
    else if (body !== undefined) args.body = await readBody(c.req.raw, body);
    if (readConfig(c.env).accessLog === "commands") c.set("command", commandText(args.body));
    const caller = callerFor(row, c.get("caller"));
    return toHttp(
      await object.callVerb(name as AgentVerb, caller, args as never, c.get("requestId")),
      row,
    );
  };
}

/** The Worker has checked the rights; verbs of the agent do not need them, and a short caller is faster to send. */
export function callerFor({ agent }: VerbRow, caller: Caller): Caller {
  return agent === true ? { ...caller, rights: [] } : caller;
}
