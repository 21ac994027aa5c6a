/** What a wire needs from the Worker: the calls of the API, and who may make them. */
import type { Caller } from "../protocol/rights.ts";

export type WireHost = {
  /** Serves a request of the API as this caller. Path and query begin with `/v1/`. */
  call(caller: Caller, path: string, init?: RequestInit): Promise<Response>;
  /** Undefined: nobody has this key or token. */
  authenticate(key: string): Promise<Caller | undefined>;
  /** The token of a sandbox, the same each time until tokens are revoked. */
  tokenOf(caller: Caller, sandbox: string): Promise<string>;
  /** Undefined: no such sandbox. */
  ownerOf(sandbox: string): Promise<string | undefined>;
  /** Reaches a server in the sandbox, if its ports are public; otherwise returns the code of the refusal. */
  forward(request: Request, sandbox: string, port: number): Promise<Response | string>;
};
