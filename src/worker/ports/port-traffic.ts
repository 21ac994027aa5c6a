/**
 * Forwards HTTP and WebSockets to servers in sandboxes, and finds the addresses that lead there. Bodies pass untouched;
 * the object checks the token. See headers.ts for the headers.
 */
import { type Env, readConfig } from "../../config.ts";
import type { ErrorBody } from "../../protocol/errors.ts";
import { refusalHeader } from "../../protocol/internal/socket-call.ts";
import {
  type Port,
  type PortAddress,
  type PortCall,
  parsePortLabel,
  portCallSchema,
  portLabel,
} from "../../protocol/port.ts";
import { readBody } from "../http/body.ts";
import type { Handler } from "../http/context.ts";
import { sandboxCalls, sandboxObject, unwrap } from "../http/objects.ts";
import { invalidField } from "../http/validate.ts";
import { inwardHeaders, outwardHeaders } from "./headers.ts";
import { refusalPage, wantsPage } from "./refusal-page.ts";

const pathPrefix = "/p/";

type PortRequest = PortAddress & {
  /** Path and query for the server, as they were written. */
  target: string;
  /** The prefix of the path form; undefined: a host of its own. */
  prefix: string | undefined;
};

/** A call of the API as it is mostly written: no form of it leads elsewhere, whatever its query says. */
const callPath = /^\/v1\/[\w/-]*(?:\?|$)/;

/** The addresses by which Berth itself was asked in this isolate: one is read once, and not for each call. */
const ownOrigins = new Set<string>();
const ownOriginsMax = 100;

/** One that is written in another form than it is read may hold a path of its own. */
function rememberOwn(origin: string): void {
  if (ownOrigins.size >= ownOriginsMax) ownOrigins.clear();
  ownOrigins.add(origin);
}

/** Undefined: the request is for Berth itself. */
export function portRequestOf({ url }: Request): PortRequest | undefined {
  const pathAt = url.indexOf("/", url.indexOf("//") + 2);
  const origin = url.slice(0, pathAt);
  if (ownOrigins.has(origin) && callPath.test(url.slice(pathAt))) return undefined;
  // The address is made of it, unread.
  if (!URL.canParse(url)) throw invalidField("Host", "is no name or address of a machine");
  const { hostname, pathname, search, origin: read } = new URL(url);
  const byHost = parsePortLabel(hostname.split(".", 1)[0] ?? "");
  if (byHost !== undefined && hostname.includes(".")) {
    return { ...byHost, target: `${pathname}${search}`, prefix: undefined };
  }
  if (origin === read) rememberOwn(origin);
  if (!pathname.startsWith(pathPrefix)) return undefined;
  const [text = ""] = pathname.slice(pathPrefix.length).split("/", 1);
  const byPath = parsePortLabel(text);
  if (byPath === undefined) return undefined;
  const prefix = `${pathPrefix}${text}`;
  const rest = pathname.slice(prefix.length);
  return { ...byPath, target: `${rest === "" ? "/" : rest}${search}`, prefix };
}

/**
 * The addresses of a port below the address at which Berth was reached, or below the domain that is set aside for them. On
 * workers.dev no host has names below it: there both are the path.
 */
function urlsOf(
  berthUrl: string,
  address: PortAddress,
  domain: string | undefined,
): { url: string; pathUrl: string } {
  const { protocol, hostname, port, origin } = new URL(berthUrl);
  // An address of numbers has no names below it; every machine answers to names below `localhost`.
  const isName = /[a-z]/i.test(hostname) && !hostname.includes(":");
  const base = `${isName ? hostname : "localhost"}${port === "" ? "" : `:${port}`}`;
  const label = portLabel(address);
  const pathUrl = `${origin}${pathPrefix}${label}/`;
  if (domain === "" || (domain === undefined && hostname.endsWith(".workers.dev"))) {
    return { url: pathUrl, pathUrl };
  }
  return { url: `${protocol}//${label}.${domain ?? base}/`, pathUrl };
}

/** The response for a port that was just opened. */
export function portOf(
  berthUrl: string,
  sandbox: string,
  { port, wake }: PortCall,
  { token, createdAt }: { token: string; createdAt: string },
  domain: string | undefined,
): Port {
  return { port, wake, createdAt, token, ...urlsOf(berthUrl, { port, sandbox, token }, domain) };
}

export async function forwardPortRequest(
  env: Env,
  request: Request,
  to: PortRequest,
  requestId: string,
): Promise<Response> {
  const { prefix } = to;
  if (prefix !== undefined && new URL(request.url).pathname === prefix) {
    // Without the last slash every relative link of the page would lead elsewhere.
    return new Response(null, { status: 308, headers: { location: `${prefix}/` } });
  }
  const answer = await sandboxObject(env, to.sandbox).fetch(inward(request, to, requestId));
  if (answer.headers.has(refusalHeader) && wantsPage(request)) {
    return refusalPage(await answer.json());
  }
  return outward(answer, prefix);
}

/** For callers that tell refusals in a form of their own: the code of the refusal in place of its response. */
export async function reachPort(
  env: Env,
  request: Request,
  to: PortRequest,
  requestId: string,
): Promise<Response | string> {
  const answer = await sandboxObject(env, to.sandbox).fetch(inward(request, to, requestId));
  if (!answer.headers.has(refusalHeader)) return outward(answer, to.prefix);
  const { error } = (await answer.json()) as ErrorBody;
  return error.code;
}

function inward(request: Request, to: PortRequest, requestId: string): Request {
  return new Request(`http://sandbox${to.target}`, {
    method: request.method,
    headers: inwardHeaders(request, to, requestId),
    body: request.body,
    redirect: "manual",
  });
}

function outward(answer: Response, prefix: string | undefined): Response {
  const { status, statusText, body, webSocket } = answer;
  const headers = outwardHeaders(answer.headers, prefix);
  // Compressed bytes pass as they are: the runtime undoes and redoes what it has to.
  return new Response(body, { status, statusText, headers, webSocket });
}

export const open: Handler = async (c) => {
  const callVerb = sandboxCalls(c);
  const call = await readBody(c.req.raw, portCallSchema);
  const opened = unwrap(await callVerb("openPort", { call }));
  const { portsDomain, publicUrl } = readConfig(c.env);
  const berthUrl = publicUrl ?? c.req.url;
  return c.json(portOf(berthUrl, c.req.param("id"), call, opened, portsDomain), 201);
};
