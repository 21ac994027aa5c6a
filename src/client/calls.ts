/**
 * The calls of the API over HTTP, flat as in the table of verbs: `Berth` and its handles (berth.ts, sandbox.ts) make
 * these calls, and tests compare them with those of other transports.
 */
import type { BerthApi, PlanApi, TemplateApi } from "../protocol/api.ts";
import type { Image } from "../protocol/image.ts";
import { limits } from "../protocol/limits.ts";
import { type Cancellable, cancellable } from "./http/cancellable.ts";
import { randomId } from "./http/random-id.ts";
import { type HttpClient, pathSegment, type Query } from "./http/request.ts";
import type { TellProgress, UploadContent } from "./http/upload.ts";
import { streamEvents } from "./special.ts";
import { type SandboxCalls, sandboxMethods } from "./verbs.ts";

/** What an administrator does to images, which no binding may. */
type BerthVerbs = Omit<BerthApi, "sandbox" | "plan" | "template"> & {
  pullImage(call: { reference: string; waitMs?: number }): Promise<Image>;
  removeImage(reference: string): Promise<Image>;
  importImage(
    name: string,
    content: UploadContent,
    options?: { progress?: TellProgress },
  ): Promise<Image>;
};

const images = "/v1/images";
const image = `${images}/find`;
const templates = "/v1/templates";

/** The calls over all sandboxes and plans of one key. */
export type PlanCalls = Cancellable<PlanApi>;

export type TemplateCalls = Cancellable<TemplateApi>;

export interface BerthCalls extends Cancellable<BerthVerbs> {
  /** The calls of one sandbox. */
  sandbox(id: string): SandboxCalls;
  /** The calls of one template. */
  template(reference: string): TemplateCalls;
  /** The calls of one plan. */
  plan(name: string): PlanCalls;
}

export function berthCalls(client: HttpClient): BerthCalls {
  return {
    ...cancellable(client, berthVerbs),
    sandbox: (id) => cancellable(client, (over) => sandboxMethods(over, id)),
    template: (reference) => cancellable(client, (over) => templateMethods(over, reference)),
    plan: (name) => cancellable(client, (over) => planMethods(over, name)),
  };
}

function berthVerbs(client: HttpClient): BerthVerbs {
  return {
    create: (body = {}, { idempotencyKey, lease, force } = {}) =>
      client.request({
        method: "POST",
        path: "/v1/sandboxes",
        body,
        // A random key by default: after a lost response the repeated call must not create a second sandbox.
        headers: { "idempotency-key": idempotencyKey ?? randomId(16), "berth-lease": lease },
        query: { force },
        isRepeatable: true,
      }),
    list: (query = {}) =>
      client.request({ method: "GET", path: "/v1/sandboxes", query: query as Query }),
    counts: () => client.request({ method: "GET", path: "/v1/counts" }),
    events: (query = {}) => client.request({ method: "GET", path: "/v1/events", query }),
    streamEvents: (query) => streamEvents(client, "/v1/events", query),
    images: () => client.request({ method: "GET", path: images }),
    image: (reference) => client.request({ method: "GET", path: image, query: { reference } }),
    pullImage: (body) =>
      client.request({ method: "POST", path: `${images}/pull`, body, isRepeatable: true }),
    removeImage: (reference) =>
      client.request({ method: "DELETE", path: image, query: { reference } }),
    importImage: (name, content, { progress } = {}) =>
      client.request({
        ...{ method: "PUT", path: `${images}/import`, query: { name } },
        upload: { content, type: "application/x-tar", progress },
        responseTimeoutMs: limits.imageImportMs,
      }),
    buildTemplate: (body) => client.request({ method: "POST", path: templates, body }),
    templates: () => client.request({ method: "GET", path: templates }),
    plans: (query = {}) =>
      client.request({ method: "GET", path: "/v1/plans", query: query as Query }),
  };
}

/** The methods of one template: each sends one request. */
function templateMethods(client: HttpClient, reference: string): TemplateApi {
  const template = `${templates}/${pathSegment(reference)}`;
  return {
    get: (query = {}) => client.request({ method: "GET", path: template, query }),
    log: (query = {}) => client.request({ method: "GET", path: `${template}/log`, query }),
    cancel: () =>
      client.request({ method: "POST", path: `${template}/cancel`, isRepeatable: true }),
    remove: () => client.request({ method: "DELETE", path: template }),
  };
}

/** The methods of one plan: each sends one request. */
function planMethods(client: HttpClient, name: string): PlanApi {
  const plan = `/v1/plans/${pathSegment(name)}`;
  const member = (key: string) => `${plan}/sandboxes/${pathSegment(key)}`;
  const run = (what: "commit" | "rollback", body: object, idempotencyKey: string | undefined) => ({
    method: "POST" as const,
    path: `${plan}/${what}`,
    body,
    headers: { "idempotency-key": idempotencyKey },
    isRepeatable: idempotencyKey !== undefined,
  });
  return {
    put: () => client.request({ method: "PUT", path: plan, body: {}, isRepeatable: true }),
    get: () => client.request({ method: "GET", path: plan }),
    remove: (query = {}) => client.request({ method: "DELETE", path: plan, query }),
    putMember: (key, body) =>
      client.request({ method: "PUT", path: member(key), body, isRepeatable: true }),
    removeMember: (key, query = {}) =>
      client.request({ method: "DELETE", path: member(key), query }),
    commit: (body = {}, { idempotencyKey } = {}) =>
      client.request(run("commit", body, idempotencyKey)),
    rollback: (body = {}, { idempotencyKey } = {}) =>
      client.request(run("rollback", body, idempotencyKey)),
    commits: (query = {}) => client.request({ method: "GET", path: `${plan}/commits`, query }),
    commitOf: (n, query = {}) =>
      client.request({ method: "GET", path: `${plan}/commits/${n}`, query }),
  };
}
