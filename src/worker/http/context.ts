/** The types that all HTTP handlers of the Worker share. */
import type { Context } from "hono";
import type { Env } from "../../config.ts";
import type { Caller } from "../../protocol/rights.ts";

export type ApiEnv = {
  Bindings: Env;
  Variables: {
    requestId: string;
    caller: Caller;
    /** The request came from another Worker by its binding. */
    isBound: boolean;
    /** What the call runs, for the access log. */
    command: string | undefined;
  };
};

export type ApiContext = Context<ApiEnv, "/:id">;

export type Handler = (c: ApiContext) => Response | Promise<Response>;
