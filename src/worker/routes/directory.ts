/**
 * Owns the routes over all sandboxes of a tenant: lists, counts, events.
 */
import { sandboxesQuerySchema } from "../../protocol/directory.ts";
import { eventsQuerySchema } from "../../protocol/event.ts";
import type { Handler } from "../app.ts";
import { parseCall } from "../body.ts";
import { directoryOf, told } from "../operations.ts";

export const list: Handler = async (c) => {
  const metadata = c.req.queries("metadata");
  const asked = { ...c.req.query(), ...(metadata === undefined ? {} : { metadata }) };
  const query = parseCall(sandboxesQuerySchema, asked);
  return c.json(told(await directoryOf(c.env, c.var.caller).list(c.var.caller, query)));
};

export const counts: Handler = async (c) =>
  c.json(told(await directoryOf(c.env, c.var.caller).counts()));

export const events: Handler = async (c) => {
  const directory = directoryOf(c.env, c.var.caller);
  const seen = c.req.header("last-event-id");
  const asked = seen === undefined ? c.req.query() : { ...c.req.query(), after: seen };
  const query = parseCall(eventsQuerySchema, asked);
  if (query.follow === "0") return c.json(told(await directory.events(query)));
  const stream = told(await directory.followEvents(query.after));
  return new Response(stream, {
    headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
  });
};
