/** Rows of the verbs by which a browser signs in and out. */
import { response, type Schemas, type VerbRow } from "./row.ts";

const session = "/v1/session" as const;

export const signInRows = (schemas: Schemas) =>
  ({
    createSignIn: {
      method: "POST",
      path: "/v1/sign-ins",
      summary: "Create a ticket that signs a browser in",
      description:
        "Valid once, within a minute. The session that it becomes has the rights of this key and ends with it.",
      right: "key",
      responses: { 201: response(schemas.signInSchema, "The ticket is shown only once.") },
      errors: ["too_many"],
    },
    signIn: {
      method: "POST",
      path: session,
      summary: "Sign a browser in by a ticket or a key",
      description:
        "Sets a cookie. Requests with `Authorization: Bearer session` from a page of this address then have its rights.",
      example: { body: { ticket: "0".repeat(43) } },
      body: schemas.signInCallSchema,
      responses: { 201: response(schemas.callerSchema, "Signed in for 12 hours.") },
      errors: ["unauthenticated", "forbidden"],
    },
    getCaller: {
      method: "GET",
      path: session,
      summary: "Get the tenant, the name and the rights of the caller's key",
      right: "key",
      responses: { 200: response(schemas.callerSchema, "Whose key the request has.") },
    },
    signOut: {
      method: "DELETE",
      path: session,
      summary: "End the session of a browser and what it has open",
      description: "A key that is not of a session stays.",
      right: "key",
      repeatable: true,
      responses: { 204: response("none", "The session has ended.") },
    },
  }) as const satisfies Record<string, VerbRow>;
