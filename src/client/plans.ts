/**
 * Makes the methods of one plan: each sends one HTTP request.
 */
import type { PlanApi } from "../protocol/api.ts";
import { type HttpClient, pathSegment } from "./http/request.ts";

export function plansPath(name?: string): string {
  return name === undefined ? "/v1/plans" : `/v1/plans/${pathSegment(name)}`;
}

export function planMethods(client: HttpClient, name: string): PlanApi {
  const plan = plansPath(name);
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
