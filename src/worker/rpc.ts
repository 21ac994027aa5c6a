/**
 * Owns the entry for other Workers: the same verbs as methods. The binding's props say who calls.
 * Does not own the verbs of one sandbox: rpc/sandbox.ts.
 */
import { WorkerEntrypoint } from "cloudflare:workers";
import type { Env } from "../config.ts";
import type { BerthApi, CreateOptions } from "../protocol/api.ts";
import {
  type Counts,
  type SandboxesInput,
  type SandboxesPage,
  sandboxesQuerySchema,
  type TenantEvents,
} from "../protocol/directory.ts";
import { eventsQuerySchema } from "../protocol/event.ts";
import type { PlansInput, PlansPage } from "../protocol/plan.ts";
import { type Caller, type Right, rightSchema, rights } from "../protocol/rights.ts";
import type { CreateInput, Sandbox } from "../protocol/sandbox.ts";
import { planRoutes } from "../protocol/verbs/plan.ts";
import { type Route, type RouteName, routes } from "../protocol/verbs.ts";
import { door } from "./app.ts";
import { demandFor, unauthenticated } from "./auth/auth.ts";
import { parseCall } from "./http/body.ts";
import { directoryOf, told } from "./http/operations.ts";
import { Calling } from "./rpc/calling.ts";
import { PlanTarget } from "./rpc/plan.ts";
import { SandboxTarget } from "./rpc/sandbox.ts";
import { createSandbox } from "./special/create.ts";
import { listPlans, Plans } from "./special/plans.ts";

/** `url`: where people reach Berth; addresses of ports are made of it. */
type Props = { tenant?: string; rights?: readonly Right[]; url?: string };

/** Without one they lead there by the binding's own `fetch`, and by nothing else. */
const boundUrl = "http://berth";

export class BerthEntry extends WorkerEntrypoint<Env, Props> implements BerthApi {
  async create(call: CreateInput = {}, options: CreateOptions = {}): Promise<Sandbox> {
    return (await createSandbox(this.env, this.#may("createSandbox"), call, options)).sandbox;
  }

  async list(query: SandboxesInput = {}): Promise<SandboxesPage> {
    const caller = this.#may("listSandboxes");
    const asked = parseCall(sandboxesQuerySchema, query);
    return told(await directoryOf(this.env, caller).list(caller, asked));
  }

  async counts(): Promise<Counts> {
    return told(await directoryOf(this.env, this.#may("countSandboxes")).counts());
  }

  async events(query: { after?: number; limit?: number } = {}): Promise<TenantEvents> {
    const caller = this.#may("listTenantEvents");
    const asked = parseCall(eventsQuerySchema, query);
    return told(await directoryOf(this.env, caller).events(asked));
  }

  async streamEvents({ after }: { after?: number } = {}): Promise<ReadableStream<Uint8Array>> {
    const caller = this.#may("listTenantEvents");
    const query = parseCall(eventsQuerySchema, after === undefined ? {} : { after });
    return told(await directoryOf(this.env, caller).followEvents(query.after));
  }

  sandbox(id: string): SandboxTarget {
    const { props } = this.ctx;
    return new SandboxTarget(new Calling(this.env, callerOf(props), id, urlOf(props)));
  }

  async plans(query: PlansInput = {}): Promise<PlansPage> {
    return listPlans(this.env, this.#may("listPlans"), query);
  }

  plan(name: string): PlanTarget {
    const caller = callerOf(this.ctx.props);
    return new PlanTarget((route) => {
      demandFor(caller, planRoutes[route], undefined);
      return new Plans(this.env, caller, name);
    });
  }

  /** Who calls, and may do what this route does. */
  #may(route: RouteName): Caller {
    const caller = callerOf(this.ctx.props);
    const known: Route = routes[route];
    demandFor(caller, known, undefined);
    return caller;
  }

  /** REST with the binding's rights instead of a key: for what RPC cannot carry. */
  override async fetch(request: Request): Promise<Response> {
    return door(callerOf(this.ctx.props)).fetch(request, this.env, this.ctx);
  }
}

function urlOf({ url = boundUrl }: Props): string {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url;
  throw new TypeError("The binding's `url` must be an http or https address of Berth.");
}

function callerOf(props: Props | undefined): Caller {
  if (typeof props?.tenant !== "string" || props.tenant === "") {
    throw unauthenticated("The binding names no tenant.");
  }
  const { tenant, rights: some = rights } = props;
  const known = rightSchema.array().safeParse(some);
  if (known.success) return { tenant, rights: known.data };
  throw unauthenticated("The binding's rights are not a list of those that there are.");
}
