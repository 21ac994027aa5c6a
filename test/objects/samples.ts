/**
 * Owns one call of each route that is right in form, for tests that go through the table of routes.
 */
type Sample = { body?: unknown; headers?: Record<string, string> };

const samples: Record<string, Sample> = {
  exec: { body: { command: "true" } },
  acquireLease: { body: { holder: "sample" } },
  renewLease: { body: {}, headers: { "berth-lease": "no-lease-of-anybody" } },
  releaseLease: { headers: { "berth-lease": "no-lease-of-anybody" } },
  connectLease: { headers: { upgrade: "websocket" } },
  patchMetadata: { body: { sample: "1" } },
  replaceMetadata: { body: { sample: "1" }, headers: { "if-match": '"0"' } },
  createToken: { body: { rights: ["read"] } },
};

export function sample(route: string): Sample {
  return samples[route] ?? {};
}
