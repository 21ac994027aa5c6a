/**
 * Owns the route of the events: a page as JSON, or a stream of server-sent events.
 */
import { eventsQuerySchema } from "../../protocol/event.ts";
import type { Handler } from "../app.ts";
import { parseCall } from "../body.ts";
import { objectOf, told } from "../operations.ts";

export const list: Handler = async (c) => {
  const object = objectOf(c.env, c.req.param("id"));
  const query = parseCall(eventsQuerySchema, c.req.query());
  const wantsStream = c.req.header("accept")?.includes("text/event-stream") === true;
  if (query.follow === "0" && !wantsStream) {
    return c.json(told(await object.events(c.var.caller, query)));
  }
  // A stream that comes back says itself what it has seen.
  const after = parseCall(eventsQuerySchema, {
    after: c.req.header("last-event-id") ?? query.after,
  });
  const stream = told(await object.followEvents(c.var.caller, after.after));
  return new Response(stream, {
    headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
  });
};
