/**
 * The entry for other Workers: the verbs as methods. The props of the binding say which tenant calls with which rights.
 *
 *     [[services]]
 *     binding = "BERTH"
 *     service = "berth"
 *     entrypoint = "BerthApi"
 *     props = { tenant = "acme", rights = ["read", "exec"] }
 *
 *     const { stdout } = await env.BERTH.sandbox(id).exec({ command: "make test" });
 */
import { WorkerEntrypoint } from "cloudflare:workers";
import type { Env } from "../config.ts";
import type { AgentVerb, CallableVerb, VerbArgs } from "../objects/sandbox/dispatch/verb-call.ts";
import type { BerthApi, CreateOptions, SandboxApi } from "../protocol/api.ts";
import type { Counts, SandboxesInput, SandboxesPage, TenantEvents } from "../protocol/directory.ts";
import { eventsQuerySchema } from "../protocol/event.ts";
import { type Image, type Images, imageQuerySchema } from "../protocol/image.ts";
import type { PlansInput, PlansPage } from "../protocol/plan.ts";
import { type Caller, type Right, rightSchema, rights } from "../protocol/rights.ts";
import type { CreateInput, Sandbox } from "../protocol/sandbox.ts";
import type { Template, TemplateInput, Templates } from "../protocol/template.ts";
import { splitArguments, targetOf } from "../protocol/verbs/arguments.ts";
import { isSandboxMethod } from "../protocol/verbs/row.ts";
import { type VerbName, type VerbRow, verbs } from "../protocol/verbs.ts";
import { createApp } from "./app.ts";
import { requireRights, unauthenticated } from "./auth/auth.ts";
import { readMethodBody } from "./http/body.ts";
import { gatedOptions, idempotentOptions } from "./http/headers.ts";
import { directoryObject, sandboxObject, unwrap } from "./http/objects.ts";
import { toMethodResult } from "./http/responses.ts";
import { validateTarget } from "./http/target.ts";
import { validate } from "./http/validate.ts";
import { callerFor } from "./http/verb-handler.ts";
import { createSandbox } from "./special/create.ts";
import { countSandboxes, listSandboxes } from "./special/events.ts";
import { findImage, listImages } from "./special/images.ts";
import { PlanTarget } from "./special/plan-target.ts";
import { listPlans, Plans } from "./special/plans.ts";
import { type Binding, SpecialTarget } from "./special/sandbox-target.ts";
import { TemplateTarget } from "./special/template-target.ts";
import { buildTemplate, listTemplates, TemplateCalls } from "./special/templates.ts";

/** `url`: the address at which people reach Berth; the addresses of ports start with it. */
type Props = { tenant?: string; rights?: readonly Right[]; url?: string };

/** Without `url` the addresses of ports lead only through the binding's own `fetch`. */
const boundUrl = "http://berth";

export class BerthEntry extends WorkerEntrypoint<Env, Props> implements BerthApi {
  async create(call: CreateInput = {}, options: CreateOptions = {}): Promise<Sandbox> {
    const caller = this.#callerFor("createSandbox");
    return (await createSandbox(this.env, caller, call, options)).sandbox;
  }

  async list(fields: SandboxesInput = {}): Promise<SandboxesPage> {
    return listSandboxes(this.env, this.#callerFor("listSandboxes"), fields);
  }

  async counts(): Promise<Counts> {
    const caller = this.#callerFor("countSandboxes");
    return countSandboxes(this.env, caller);
  }

  async events(fields: { after?: number; limit?: number } = {}): Promise<TenantEvents> {
    const caller = this.#callerFor("listTenantEvents");
    const query = validate(eventsQuerySchema, fields);
    return unwrap(await directoryObject(this.env, caller).events(query));
  }

  async streamEvents({ after }: { after?: number } = {}): Promise<ReadableStream<Uint8Array>> {
    const caller = this.#callerFor("listTenantEvents");
    const query = validate(eventsQuerySchema, after === undefined ? {} : { after });
    return unwrap(await directoryObject(this.env, caller).followEvents(query.after));
  }

  sandbox(id: string): SandboxApi {
    const { props } = this.ctx;
    const binding = { env: this.env, caller: callerOf(props), id, url: urlOf(props) };
    return new SandboxTarget(binding) as SpecialTarget & SandboxApi;
  }

  async images(): Promise<Images> {
    this.#callerFor("listImages");
    return listImages(this.env);
  }

  async image(reference: string): Promise<Image> {
    this.#callerFor("getImage");
    return findImage(this.env, validate(imageQuerySchema, { reference }).reference);
  }

  async buildTemplate(call: TemplateInput): Promise<Template> {
    return buildTemplate(this.env, this.#callerFor("buildTemplate"), call);
  }

  async templates(): Promise<Templates> {
    return listTemplates(this.env, this.#callerFor("listTemplates"));
  }

  template(reference: string): TemplateTarget {
    return new TemplateTarget(
      (verb) => new TemplateCalls(this.env, this.#callerFor(verb), reference),
    );
  }

  async plans(query: PlansInput = {}): Promise<PlansPage> {
    return listPlans(this.env, this.#callerFor("listPlans"), query);
  }

  plan(name: string): PlanTarget {
    return new PlanTarget((verb) => new Plans(this.env, this.#callerFor(verb), name));
  }

  #callerFor(name: VerbName): Caller {
    const caller = callerOf(this.ctx.props);
    const row: VerbRow = verbs[name];
    requireRights(caller, row, undefined);
    return caller;
  }

  /** Serves the HTTP API with the rights of the binding instead of a key, for what RPC cannot carry. */
  override async fetch(request: Request): Promise<Response> {
    return createApp(callerOf(this.ctx.props)).fetch(request, this.env, this.ctx);
  }
}

/** One sandbox: the methods of SpecialTarget, and one derived from each other row. */
class SandboxTarget extends SpecialTarget {}

// workerd looks methods of an RpcTarget up on its prototype.
for (const [name, row] of Object.entries(verbs as Record<string, VerbRow>)) {
  const method = row.call ?? name;
  if (!isSandboxMethod(row) || method in SandboxTarget.prototype) continue;
  Object.defineProperty(SandboxTarget.prototype, method, {
    value: sandboxMethod(name as CallableVerb, row),
  });
}

/** The RPC method of a verb, derived from its row. */
export function sandboxMethod(name: CallableVerb, row: VerbRow) {
  const target = targetOf(row);
  const gate = row.idempotent === true ? idempotentOptions : gatedOptions;
  return async function (
    this: { readonly binding: Binding },
    ...given: unknown[]
  ): Promise<unknown> {
    const { env, caller, id } = this.binding;
    requireRights(caller, row, id);
    const object = sandboxObject(env, id);
    const parts = splitArguments(row, given, target);
    const args: VerbArgs = row.gated === true ? { gated: gate(parts.headers) } : {};
    if (target !== undefined) args.target = validateTarget(target, id, parts.target);
    if (row.query !== undefined)
      args.query = validate(row.query, parts.query) as VerbArgs["query"] & {};
    if (row.body !== undefined) args.body = readMethodBody(row, parts.body);
    const requestId = crypto.randomUUID();
    const outcome = await object.callVerb(
      name as AgentVerb,
      callerFor(row, caller),
      args as never,
      requestId,
    );
    return toMethodResult(outcome, row);
  };
}

function urlOf({ url = boundUrl }: Props): string {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url;
  throw new TypeError("The `url` of the binding must be an http or https address of Berth.");
}

function callerOf(props: Props | undefined): Caller {
  if (typeof props?.tenant !== "string" || props.tenant === "") {
    throw unauthenticated("The props of the binding name no tenant.");
  }
  const { tenant, rights: given = rights } = props;
  const known = rightSchema.array().safeParse(given);
  if (known.success) return { tenant, rights: known.data };
  throw unauthenticated("The `rights` of the binding must be a list of rights.");
}
