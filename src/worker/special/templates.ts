/** Serves the verbs on templates, over HTTP and RPC. */
import type { Env } from "../../config.ts";
import type { BuildJob } from "../../objects/templates/rows.ts";
import { templateReferenceSchema } from "../../protocol/fields/template-reference.ts";
import { limits } from "../../protocol/limits.ts";
import type { Caller } from "../../protocol/rights.ts";
import { createCallSchema } from "../../protocol/sandbox.ts";
import {
  type Template,
  type TemplateCall,
  type TemplateLog,
  type Templates,
  templateCallSchema,
  templateLogQuerySchema,
  templateQuerySchema,
} from "../../protocol/template.ts";
import { readBody } from "../http/body.ts";
import type { ApiContext, Handler } from "../http/context.ts";
import { templatesObject, unwrap } from "../http/objects.ts";
import { validate, validateField } from "../http/validate.ts";
import { unparsedSchema } from "./create.ts";
import { newSandbox } from "./new-sandbox.ts";

/** The sandbox of a build that everybody forgot ends after this. */
const lifetimeMarginMs = 600_000;

export async function buildTemplate(env: Env, caller: Caller, body: unknown): Promise<Template> {
  const call = validate(templateCallSchema, body);
  const job = await jobOf(env, caller, call);
  return unwrap(await templatesObject(env, caller).build(call.name, job));
}

/** The sandbox is described as for a create, which checks its image, size and origin. */
async function jobOf(env: Env, caller: Caller, call: TemplateCall): Promise<BuildJob> {
  const { image, checkpoint: from, template } = call.from;
  const written = {
    ...{ idleTimeoutMs: limits.idleTimeoutMaxMs, onIdle: "none", wake: "never" },
    maxLifetimeMs: limits.templateBuildMs + lifetimeMarginMs,
    metadata: { template: call.name },
    // Those of its origin would run together with the steps.
    services: [],
    ...(call.size === undefined ? {} : { size: call.size }),
  };
  const origin = { image, from, template };
  const { waitMs, onExisting, count, ...policy } = createCallSchema.parse({
    ...written,
    ...origin,
  });
  const { make, createRefusal } = await newSandbox(env, caller, policy, written);
  if (createRefusal !== undefined) unwrap({ refused: createRefusal });
  const { steps, start, ready } = call;
  // The sandbox that builds has another version than the one that it makes.
  return { make: { ...make, spec: { ...make.spec, template: undefined } }, steps, start, ready };
}

export function listTemplates(env: Env, caller: Caller): Promise<Templates> {
  return templatesObject(env, caller).list();
}

/** The template of one caller with one name. */
export class TemplateCalls {
  readonly #env: Env;
  readonly #caller: Caller;
  readonly #reference: string;

  constructor(env: Env, caller: Caller, reference: string) {
    this.#env = env;
    this.#caller = caller;
    this.#reference = validateField("template", templateReferenceSchema, reference);
  }

  async get(query: unknown): Promise<Template> {
    const { waitMs } = validate(templateQuerySchema, query);
    return unwrap(await this.#object().get(this.#reference, waitMs));
  }

  async log(query: unknown): Promise<TemplateLog> {
    const { after, waitMs } = validate(templateLogQuerySchema, query);
    return unwrap(await this.#object().log(this.#reference, after, waitMs));
  }

  async cancel(): Promise<Template> {
    return unwrap(await this.#object().cancel(this.#reference));
  }

  async remove(): Promise<Template> {
    return unwrap(await this.#object().remove(this.#reference));
  }

  #object() {
    return templatesObject(this.#env, this.#caller);
  }
}

const callsOf = (c: ApiContext) =>
  new TemplateCalls(c.env, c.get("caller"), c.req.param("template" as never));

export const build: Handler = async (c) =>
  c.json(
    await buildTemplate(c.env, c.get("caller"), await readBody(c.req.raw, unparsedSchema)),
    202,
  );

export const list: Handler = async (c) => c.json(await listTemplates(c.env, c.get("caller")));

export const get: Handler = async (c) => c.json(await callsOf(c).get(c.req.query()));

export const log: Handler = async (c) => c.json(await callsOf(c).log(c.req.query()));

export const cancel: Handler = async (c) => c.json(await callsOf(c).cancel());

export const remove: Handler = async (c) => c.json(await callsOf(c).remove());
