/** Lists sandboxes in pages, in the order of their start. */
import type { ListedSandbox, SandboxesPage } from "../../protocol/directory.ts";
import { limits } from "../../protocol/limits.ts";
import type { ApiCalls } from "../api-calls.ts";
import type { ControlCall } from "./control.ts";
import { WireError } from "./errors.ts";
import { readFilters, wireKeys } from "./metadata.ts";
import { listedOf } from "./sandboxes.ts";

const pageMax = 100;

type Listed = ReturnType<typeof listedOf>;

export async function listAll({ calls, query }: ControlCall): Promise<Response> {
  const all = await listMatching(calls, query);
  const { page, headers } = cutPage(all, query, ({ startedAt, sandboxID }) => [
    startedAt,
    sandboxID,
  ]);
  const running = all.filter(({ state }) => state === "running").length;
  headers.set("x-total-running", String(running));
  return Response.json(page, { headers });
}

/** Clients of an earlier time know no pages. */
export async function listRunning({ calls, query }: ControlCall): Promise<Response> {
  const all = await listMatching(calls, query);
  return Response.json(all.filter(({ state }) => state === "running"));
}

async function listMatching(calls: ApiCalls, query: URLSearchParams): Promise<Listed[]> {
  const states = query.getAll("state").flatMap((text) => text.split(","));
  const wrong = states.find((state) => state !== "running" && state !== "paused");
  if (wrong !== undefined)
    throw new WireError(400, `state must be running or paused, not ${wrong}`);
  const since = timeOf(query.get("startedAfter"));
  const template = query.get("template");
  const all = await readAll(calls, readFilters(query.get("metadata")));
  const listed = all
    .filter(({ metadata }) => metadata[wireKeys.template] !== undefined)
    .map(listedOf)
    .filter(({ state }) => states.length === 0 || states.includes(state))
    .filter(({ templateID }) => template === null || templateID === template)
    .filter(({ startedAt }) => Date.parse(startedAt) >= since);
  const direction = query.get("order") === "asc" ? 1 : -1;
  return listed.sort((a, b) => direction * compare(keyOf(a), keyOf(b)));
}

function keyOf({ startedAt, sandboxID }: Listed): string {
  return `${startedAt} ${sandboxID}`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The Directory orders by creation, this wire by start: all matching ones are read for a page. */
export async function readAll(
  calls: ApiCalls,
  metadata: Record<string, string>,
): Promise<ListedSandbox[]> {
  const query = new URLSearchParams({
    state: "starting,running,pausing,paused,failed",
    limit: String(limits.sandboxesPageMax),
  });
  for (const [key, value] of Object.entries(metadata)) query.append("metadata", `${key}=${value}`);
  const all: ListedSandbox[] = [];
  for (;;) {
    const page = await calls.json<SandboxesPage>("GET", `/v1/sandboxes?${query}`);
    all.push(...page.sandboxes);
    if (page.nextCursor === null) return all;
    query.set("cursor", page.nextCursor);
  }
}

/** The cursor names the last entry of a page, so that what is removed meanwhile omits nothing. */
export function cutPage<Entry>(
  all: Entry[],
  query: URLSearchParams,
  positionOf: (entry: Entry) => string[],
): { page: Entry[]; headers: Headers } {
  const limit = Number(query.get("limit") ?? pageMax);
  if (!Number.isInteger(limit) || limit < 1 || limit > pageMax) {
    throw new WireError(400, `limit must be a whole number from 1 to ${pageMax}`);
  }
  const token = query.get("nextToken");
  const direction = query.get("order") === "asc" ? 1 : -1;
  const from =
    token === null
      ? all
      : all.filter(
          (entry) => direction * compare(positionOf(entry).join(" "), readToken(token)) > 0,
        );
  const page = from.slice(0, limit);
  const headers = new Headers();
  const last = page.at(-1);
  if (from.length > limit && last !== undefined) {
    headers.set("x-next-token", Buffer.from(positionOf(last).join(" ")).toString("base64url"));
  }
  return { page, headers };
}

function readToken(token: string): string {
  const text = Buffer.from(token, "base64url").toString();
  if (/^\S+ \S+$/.test(text)) return text;
  throw new WireError(400, "nextToken must be one that a page gave");
}

function timeOf(text: string | null): number {
  if (text === null) return Number.NEGATIVE_INFINITY;
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw new WireError(400, "startedAfter must be a time (RFC 3339)");
  return time;
}
