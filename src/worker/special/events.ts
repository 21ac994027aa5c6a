/** HTTP handlers of the Directory, and of events: a page as JSON, or a stream of server-sent events. */

import type { Context } from "hono";
import { type Env, readConfig } from "../../config.ts";
import type { Result } from "../../objects/shared/result.ts";
import { type Counts, type SandboxesPage, sandboxesQuerySchema } from "../../protocol/directory.ts";
import { type EventsQuery, eventsQuerySchema } from "../../protocol/event.ts";
import { quotaOf } from "../../protocol/fields/quota.ts";
import type { Caller } from "../../protocol/rights.ts";
import { tenantIdOf } from "../auth/ids.ts";
import type { ApiEnv, Handler } from "../http/context.ts";
import { eventStreamType } from "../http/headers.ts";
import { directoryObject, sandboxCalls, unwrap } from "../http/objects.ts";
import { validate } from "../http/validate.ts";

type EventSource = {
  /** Refuses a caller that may not read the events. */
  check(): Promise<void>;
  page(query: EventsQuery): Promise<Result<object>>;
  follow(after: number): Promise<Result<ReadableStream>>;
};

export const ofSandbox: Handler = (c) => {
  const callVerb = sandboxCalls(c);
  return events(c, {
    check: async () => void unwrap(await callVerb("getSandbox", {})),
    page: (query) => callVerb("listEvents", { query }),
    follow: (after) => callVerb("followEvents", { after }),
  });
};

export const ofTenant: Handler = (c) => {
  const directory = directoryObject(c.env, c.get("caller"));
  const { keyId } = c.get("caller");
  return events(c, {
    check: async () => {},
    page: (query) => directory.events(query),
    follow: (after) => directory.followEvents(after, keyId),
  });
};

async function events(c: Context<ApiEnv>, source: EventSource): Promise<Response> {
  // A client that reconnects sends the last event it has seen.
  const lastEventId = c.req.header("last-event-id");
  const fields =
    lastEventId === undefined ? c.req.query() : { ...c.req.query(), after: lastEventId };
  const query = validate(eventsQuerySchema, fields);
  const wantsStream = c.req.header("accept")?.includes(eventStreamType) === true;
  if (query.follow === "0" && !wantsStream) return c.json(unwrap(await source.page(query)));
  // A stream that nobody reads would keep a reader's place until its next event.
  const isHead = c.req.method === "HEAD";
  if (isHead) await source.check();
  return new Response(isHead ? null : unwrap(await source.follow(query.after)), {
    headers: { "content-type": eventStreamType, "cache-control": "no-store" },
  });
}

export const list: Handler = async (c) => {
  const metadata = c.req.queries("metadata");
  const fields = { ...c.req.query(), ...(metadata === undefined ? {} : { metadata }) };
  return c.json(await listSandboxes(c.env, c.get("caller"), fields));
};

export async function listSandboxes(
  env: Env,
  caller: Caller,
  fields: unknown,
): Promise<SandboxesPage> {
  const query = validate(sandboxesQuerySchema, fields);
  const page = unwrap(await directoryObject(env, caller).list(caller, query));
  return { ...page, tenantId: tenantIdOf(caller.tenant, readConfig(env).secret) };
}

export const count: Handler = async (c) => c.json(await countSandboxes(c.env, c.get("caller")));

export async function countSandboxes(env: Env, caller: Caller): Promise<Counts> {
  const counts = unwrap(await directoryObject(env, caller).counts());
  const quota = quotaOf(readConfig(env).quotas, caller.tenant);
  return Object.keys(quota).length === 0 ? counts : { ...counts, quota };
}
