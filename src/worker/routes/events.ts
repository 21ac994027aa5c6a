/**
 * Owns the routes of events, of one sandbox and of all of a tenant: a page as JSON, or a stream of server-sent events.
 */
import type { Context } from "hono";
import type { Answer } from "../../objects/shared/result.ts";
import { type EventsQuery, eventsQuerySchema } from "../../protocol/event.ts";
import type { Door, Handler } from "../app.ts";
import { parseCall } from "../http/body.ts";
import { directoryOf, objectOf, told } from "../http/operations.ts";

type Source = {
  page(query: EventsQuery): Promise<Answer<object>>;
  follow(after: number): Promise<Answer<ReadableStream>>;
};

export const ofSandbox: Handler = (c) => {
  const object = objectOf(c.env, c.req.param("id"));
  const caller = c.get("caller");
  return events(c, {
    page: (query) => object.events(caller, query),
    follow: (after) => object.followEvents(caller, after),
  });
};

export const ofTenant: Handler = (c) => {
  const directory = directoryOf(c.env, c.get("caller"));
  return events(c, {
    page: (query) => directory.events(query),
    follow: (after) => directory.followEvents(after),
  });
};

async function events(c: Context<Door>, source: Source): Promise<Response> {
  // A stream that comes back says itself what it has seen.
  const seen = c.req.header("last-event-id");
  const asked = seen === undefined ? c.req.query() : { ...c.req.query(), after: seen };
  const query = parseCall(eventsQuerySchema, asked);
  const wantsStream = c.req.header("accept")?.includes("text/event-stream") === true;
  if (query.follow === "0" && !wantsStream) return c.json(told(await source.page(query)));
  return new Response(told(await source.follow(query.after)), {
    headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
  });
}
