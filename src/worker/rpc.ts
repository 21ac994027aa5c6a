/**
 * Owns the entry for other Workers: the same verbs as methods. The binding's props say who calls.
 * Does not own the verbs of one sandbox: rpc/sandbox.ts.
 */
import { WorkerEntrypoint } from "cloudflare:workers";
import type { Env } from "../config.ts";
import type { BerthApi } from "../protocol/api.ts";
import { type Caller, type Right, rights } from "../protocol/rights.ts";
import type { CreateInput, Sandbox } from "../protocol/sandbox.ts";
import { door } from "./app.ts";
import { demand, unauthenticated } from "./auth.ts";
import { createSandbox } from "./create.ts";
import { Calling } from "./rpc/calling.ts";
import { SandboxTarget } from "./rpc/sandbox.ts";

type Props = { tenant?: string; rights?: readonly Right[] };

export class BerthEntry extends WorkerEntrypoint<Env, Props> implements BerthApi {
  async create(call: CreateInput = {}): Promise<Sandbox> {
    const caller = callerOf(this.ctx.props);
    demand(caller, "key", undefined);
    return createSandbox(this.env, caller, call);
  }

  sandbox(id: string): SandboxTarget {
    return new SandboxTarget(new Calling(this.env, callerOf(this.ctx.props), id));
  }

  /** REST with the binding's rights instead of a key: for what RPC cannot carry. */
  override async fetch(request: Request): Promise<Response> {
    return door(callerOf(this.ctx.props)).fetch(request, this.env, this.ctx);
  }
}

function callerOf(props: Props | undefined): Caller {
  if (typeof props?.tenant === "string" && props.tenant !== "") {
    return { tenant: props.tenant, rights: props.rights ?? rights };
  }
  throw unauthenticated("The binding names no tenant.");
}
