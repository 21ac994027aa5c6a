/** The calls of the API over HTTP, flat as in the table of verbs, for tests of the calls themselves. */
import { type BerthCalls, berthCalls } from "../src/client/calls.ts";
import { type ConnectOptions, clientConfig } from "../src/client/connect.ts";
import { createHttpClient } from "../src/client/http/http-client.ts";
import type { CallOptions, HttpClient } from "../src/client/http/request.ts";

/** Also with options for all calls, as `Berth` has it. */
export type ConnectedCalls = BerthCalls & { with(options: CallOptions): ConnectedCalls };

export function connectCalls(options: ConnectOptions): ConnectedCalls {
  return withOptions(createHttpClient(clientConfig(options)));
}

function withOptions(client: HttpClient): ConnectedCalls {
  return { ...berthCalls(client), with: (options) => withOptions(client.with(options)) };
}
