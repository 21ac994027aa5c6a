/**
 * Owns the verbs of plans over REST.
 * Does not own how a call is sent (link.ts).
 */
import type { PlanApi } from "../protocol/plan-api.ts";
import { type HttpClient, pathSegment } from "./http/request.ts";

export function plansPath(name?: string): string {
  return name === undefined ? "/v1/plans" : `/v1/plans/${pathSegment(name)}`;
}

export function planOf(link: HttpClient, name: string): PlanApi {
  const one = plansPath(name);
  const member = (key: string) => `${one}/sandboxes/${pathSegment(key)}`;
  const run = (what: "commit" | "rollback", body: object, idempotencyKey: string | undefined) => ({
    method: "POST" as const,
    path: `${one}/${what}`,
    body,
    headers: { "idempotency-key": idempotencyKey },
    isRepeatable: idempotencyKey !== undefined,
  });
  return {
    // There, or made: the same one again.
    put: () => link.request({ method: "PUT", path: one, body: {}, isRepeatable: true }),
    get: () => link.request({ method: "GET", path: one }),
    remove: (query = {}) => link.request({ method: "DELETE", path: one, query }),
    putMember: (key, body) =>
      link.request({ method: "PUT", path: member(key), body, isRepeatable: true }),
    removeMember: (key, query = {}) => link.request({ method: "DELETE", path: member(key), query }),
    commit: (body = {}, { idempotencyKey } = {}) =>
      link.request(run("commit", body, idempotencyKey)),
    rollback: (body = {}, { idempotencyKey } = {}) =>
      link.request(run("rollback", body, idempotencyKey)),
    commits: (query = {}) => link.request({ method: "GET", path: `${one}/commits`, query }),
    commitOf: (n, query = {}) =>
      link.request({ method: "GET", path: `${one}/commits/${n}`, query }),
  };
}
