/**
 * Owns the entry for other Workers: the same verbs as methods. The binding's props say who calls.
 * Does not own the work: REST and RPC share operations.ts.
 */
import { RpcTarget, WorkerEntrypoint } from "cloudflare:workers";
import type { Env } from "../config.ts";
import type { GatedCaller } from "../objects/sandbox/gated.ts";
import type { BerthApi, GateOptions, SandboxApi } from "../protocol/api.ts";
import { BerthError, type ErrorBody } from "../protocol/errors.ts";
import { eventsQuerySchema } from "../protocol/event.ts";
import { type ExecInput, type ExecResult, execCallSchema } from "../protocol/exec.ts";
import { type AcquireInput, acquireCallSchema, renewCallSchema } from "../protocol/lease.ts";
import { type MetadataPatch, metadataPatchSchema } from "../protocol/metadata.ts";
import { type Caller, type Right, rights, tokenCallSchema } from "../protocol/rights.ts";
import { type CreateInput, createCallSchema, type Sandbox } from "../protocol/sandbox.ts";
import type { KeyedOptions } from "../protocol/work-api.ts";
import { door } from "./app.ts";
import { demand, unauthenticated } from "./auth.ts";
import { parseCall } from "./body.ts";
import { createSandbox, createToken, objectOf, told } from "./operations.ts";
import { idempotencyKey } from "./query.ts";

type Props = { tenant?: string; rights?: readonly Right[] };

export class BerthEntry extends WorkerEntrypoint<Env, Props> implements BerthApi {
  async create(call: CreateInput = {}): Promise<Sandbox> {
    const caller = callerOf(this.ctx.props);
    demand(caller, "key", undefined);
    return createSandbox(this.env, caller, parseCall(createCallSchema, call));
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

  async get() {
    return told(await this.#object("read").get(this.#caller));
  }

  async start() {
    return told(await this.#object("lifecycle").start(this.#caller));
  }

  async pause(options: GateOptions & { force?: boolean } = {}) {
    const object = this.#object("lifecycle");
    return told(await object.pause(this.#caller, gated(options), options.force ?? false));
  }

  async touch() {
    return told(await this.#object("exec").touch(this.#caller));
  }

  async destroy(options: GateOptions & { force?: boolean } = {}) {
    const object = this.#object("lifecycle");
    return told(await object.destroy(this.#caller, gated(options), options.force ?? false));
  }

  async exec(call: ExecInput, options: KeyedOptions = {}): Promise<ExecResult> {
    const object = this.#object("exec");
    const checked = parseCall(execCallSchema, call);
    const requestId = crypto.randomUUID();
    const reply = await object.exec(this.#caller, keyed(options), checked, requestId);
    const text = reply instanceof Response ? await reply.text() : reply.json;
    const body = JSON.parse(text) as ExecResult | ErrorBody;
    if (!("error" in body)) return body;
    const { code, message, hint, retryable: _retryable, ...facts } = body.error;
    throw new BerthError(code, message, { facts, ...(hint === undefined ? {} : { hint }) });
  }

  async acquireLease(call: AcquireInput = {}) {
    const object = this.#object("lease");
    return told(await object.acquire(this.#caller, parseCall(acquireCallSchema, call)));
  }

  async renewLease(token: string, options: { ttlMs?: number } = {}) {
    const object = this.#object("lease");
    const { ttlMs } = parseCall(renewCallSchema, options);
    return told(await object.renew(this.#caller, token, ttlMs));
  }

  async releaseLease(token: string, options: { force?: boolean } = {}) {
    const object = this.#object("lease");
    return told(await object.release(this.#caller, token, options.force ?? false));
  }

  async breakLease(reason: string) {
    return told(await this.#object("admin").breakLease(this.#caller, reason));
  }

  async lease() {
    return told(await this.#object("read").leaseState(this.#caller));
  }

  async metadata() {
    return told(await this.#object("read").metadata(this.#caller));
  }

  async patchMetadata(patch: MetadataPatch, options: { ifMatch?: number } = {}) {
    const object = this.#object("lifecycle");
    const change = parseCall(metadataPatchSchema, patch);
    return told(await object.patchMetadata(this.#caller, change, options.ifMatch));
  }

  async replaceMetadata(to: MetadataPatch, options: { ifMatch: number }) {
    const object = this.#object("lifecycle");
    const all = parseCall(metadataPatchSchema, to);
    return told(await object.replaceMetadata(this.#caller, all, options.ifMatch));
  }

  async events(query: { after?: number; limit?: number } = {}) {
    const object = this.#object("read");
    return told(await object.events(this.#caller, parseCall(eventsQuerySchema, query)));
  }

  async createToken(call: { rights: Right[]; ttlMs?: number }) {
    this.#object("key");
    return createToken(this.#env, this.#caller, this.#id, parseCall(tokenCallSchema, call));
  }

  async revokeTokens() {
    told(await this.#object("key").revokeTokens(this.#caller));
  }

  async createTicket() {
    return told(await this.#object("lease").connectTicket(this.#caller));
  }

  #object(right: Right | "key") {
    demand(this.#caller, right, this.#id);
    return objectOf(this.#env, this.#id);
  }
}

function gated({ lease, waitMs, wake }: GateOptions): GatedCaller {
  return { token: lease, waitMs, mayWake: wake ?? true };
}

function keyed({ idempotencyKey: key, ...options }: KeyedOptions): GatedCaller {
  return { ...gated(options), key: idempotencyKey(key) };
}

function callerOf(props: Props | undefined): Caller {
  if (typeof props?.tenant === "string" && props.tenant !== "") {
    return { tenant: props.tenant, rights: props.rights ?? rights };
  }
  throw unauthenticated("The binding names no tenant.");
}
