/** The SDK as the dashboard uses it: the browser's cookie is the key, and `session` as the key says so. */
import { Berth, BerthError } from "../client/index.ts";
import type { Health } from "../protocol/health.ts";

export const berth = Berth.connect({ url: location.origin, key: "session" });

export type Session = { tenant: string; name: string; rights: string[]; expiresAt: string };

/** Undefined where nobody is signed in. */
export async function readSession(): Promise<Session | undefined> {
  const response = await call("GET");
  return response.status === 401 ? undefined : ((await bodyOf(response)) as Session);
}

/** Exchanges a ticket of a printed link, or a key, for a session of this browser. */
export async function signIn(proof: { ticket: string } | { key: string }): Promise<Session> {
  return (await bodyOf(await call("POST", proof))) as Session;
}

/** Ends the session, and with it what it opened, in all tabs. */
export async function signOut(): Promise<void> {
  await bodyOf(await call("DELETE"));
}

/** Needs no key, so it is no method of the SDK. */
export async function readHealth(signal: AbortSignal): Promise<Health> {
  return (await (await fetch("/health", { signal })).json()) as Health;
}

function call(method: string, body?: object): Promise<Response> {
  return fetch("/v1/session", {
    method,
    headers: { authorization: "Bearer session", "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

async function bodyOf(response: Response): Promise<unknown> {
  if (response.status === 204) return undefined;
  const body = await response.json();
  if (response.ok) return body;
  const { code, message, hint } = body.error;
  throw new BerthError(code, message, { hint, requestId: body.requestId });
}
