/** Rows of the verbs on the lease of a sandbox. */
import { leaseErrors, response, type Schemas, sandboxPath, type VerbRow } from "./row.ts";

const lease = `${sandboxPath}/lease` as const;

export const leaseRows = (schemas: Schemas) =>
  ({
    acquireLease: {
      method: "POST",
      path: lease,
      summary: "Acquire the lease, or join the queue for it",
      description:
        "The lease is the exclusive right to change the sandbox for a while. Repeat a queued call with its `ticket` to keep the position in the queue.",
      example: { body: { holder: "ci", ttlMs: 60_000, waitMs: 20_000 } },
      right: "lease",
      body: schemas.acquireCallSchema,
      optionalBody: true,
      // With a ticket it is the same place in the queue, or the same lease.
      repeatable: ({ ticket }) => ticket !== undefined,
      responses: {
        201: response(schemas.leaseSchema, "Granted."),
        202: response(schemas.leaseQueuedSchema, "Queued: repeat the call with the ticket."),
      },
      errors: [...leaseErrors, "queue_full"],
    },
    renewLease: {
      method: "PUT",
      path: lease,
      summary: "Renew the lease",
      description: "The header `Berth-Lease` carries the token of the lease.",
      example: { body: { ttlMs: 60_000 } },
      right: "lease",
      body: schemas.renewCallSchema,
      responses: { 200: response(schemas.leaseSchema, "Renewed.") },
      errors: ["lease_lost"],
    },
    releaseLease: {
      method: "DELETE",
      path: lease,
      summary: "Release the lease, or revoke it with `?break=true`",
      description:
        "The holder sends the token in the header `Berth-Lease`. `?break=true&reason=…` takes the lease from its holder and needs the right `admin`.",
      example: { query: { break: "1", reason: "the job hangs" } },
      right: "lease",
      query: schemas.releaseQuerySchema,
      responses: {
        200: response(
          schemas.leaseReleasedSchema,
          "Free, or `draining`: free when the holder's work has ended.",
        ),
      },
      errors: ["sandbox_destroyed", "lease_busy", "lease_lost"],
    },
    getLease: {
      method: "GET",
      path: lease,
      call: "lease",
      summary: "Show who holds the lease, until when, and who waits for it",
      right: "read",
      responses: { 200: response(schemas.leaseStateSchema, "The lease now.") },
    },
    connectLease: {
      method: "GET",
      path: `${lease}/connect`,
      summary: "Hold the lease with a WebSocket",
      description:
        "Sends the frames `queued`, `granted` and `lost`. Closing the WebSocket with code 1000 or none releases the lease; after a cut its holder has 3 seconds to return with its token.",
      example: { query: { holder: "ci" } },
      right: "lease",
      query: schemas.connectLeaseQuerySchema,
      responses: {},
      errors: ["sandbox_destroyed", "upgrade_required"],
    },
  }) as const satisfies Record<string, VerbRow>;
