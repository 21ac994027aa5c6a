/**
 * Owns the entry for other Workers: the same verbs as methods. The binding's props say who calls.
 * Does not own the work: REST and RPC share operations.ts.
 */
import { RpcTarget, WorkerEntrypoint } from "cloudflare:workers";
import type { Env } from "../config.ts";
import type { BerthApi, SandboxApi } from "../protocol/api.ts";
import { BerthError, type ErrorBody } from "../protocol/errors.ts";
import { type ExecInput, type ExecResult, execCallSchema } from "../protocol/exec.ts";
import { type CreateInput, createCallSchema, type Sandbox } from "../protocol/sandbox.ts";
import { door } from "./app.ts";
import { type Caller, unauthenticated } from "./auth.ts";
import { parseCall } from "./body.ts";
import { createSandbox, destroySandbox, exec, getSandbox } from "./operations.ts";

type Props = { tenant?: string };

export class BerthEntry extends WorkerEntrypoint<Env, Props> implements BerthApi {
  async create(call: CreateInput = {}): Promise<Sandbox> {
    return createSandbox(this.env, callerOf(this.ctx.props), parseCall(createCallSchema, call));
  }

  sandbox(id: string): SandboxTarget {
    return new SandboxTarget(this.env, callerOf(this.ctx.props), id);
  }

  /** REST with the binding's rights instead of a key: for what RPC cannot carry. */
  override async fetch(request: Request): Promise<Response> {
    return door(callerOf(this.ctx.props)).fetch(request, this.env, this.ctx);
  }
}

class SandboxTarget extends RpcTarget implements SandboxApi {
  readonly #env: Env;
  readonly #caller: Caller;
  readonly #id: string;

  constructor(env: Env, caller: Caller, id: string) {
    super();
    this.#env = env;
    this.#caller = caller;
    this.#id = id;
  }

  get(): Promise<Sandbox> {
    return getSandbox(this.#env, this.#caller, this.#id);
  }

  destroy(): Promise<Sandbox> {
    return destroySandbox(this.#env, this.#caller, this.#id);
  }

  async exec(call: ExecInput): Promise<ExecResult> {
    const checked = parseCall(execCallSchema, call);
    const requestId = crypto.randomUUID();
    const response = await exec(this.#env, this.#caller, this.#id, checked, requestId);
    const body = (await response.json()) as ExecResult | ErrorBody;
    if (!("error" in body)) return body;
    const { code, message, hint, retryable: _retryable, ...facts } = body.error;
    throw new BerthError(code, message, { facts, ...(hint === undefined ? {} : { hint }) });
  }
}

function callerOf(props: Props | undefined): Caller {
  if (typeof props?.tenant === "string" && props.tenant !== "") return { tenant: props.tenant };
  throw unauthenticated("The binding names no tenant.");
}
