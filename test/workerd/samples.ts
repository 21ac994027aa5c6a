/** One valid call of each route, for tests that go through the table of verbs. */
import type { VerbRow } from "../../src/protocol/verbs.ts";

type Sample = { body?: unknown; headers?: Record<string, string> };

const bytes = { "content-type": "application/octet-stream" };
const upgrade = { upgrade: "websocket" };

const samples: Record<string, Sample> = {
  exec: { body: { command: "true" } },
  acquireLease: { body: { holder: "sample" } },
  renewLease: { body: {}, headers: { "berth-lease": "no-lease-of-anybody" } },
  releaseLease: { headers: { "berth-lease": "no-lease-of-anybody" } },
  connectLease: { headers: upgrade },
  patchMetadata: { body: { sample: "1" } },
  replaceMetadata: { body: { sample: "1" }, headers: { "if-match": '"0"' } },
  createToken: { body: { rights: ["read"] } },
  setEnd: { body: { afterMs: 600_000 } },
  startProcess: { body: { command: "true" } },
  writeStdin: { body: "sample", headers: bytes },
  signalProcess: { body: { signal: "SIGTERM" } },
  createSession: { body: { id: "sample" } },
  execInSession: { body: { command: "true" } },
  startProcessInSession: { body: { command: "true" } },
  createTerminal: { body: { id: "sample" } },
  resizeTerminal: { body: { cols: 80, rows: 24 } },
  connectTerminal: { headers: upgrade },
  writeFile: { body: "sample", headers: bytes },
  makeFolder: { body: { path: "sample" } },
  moveFile: { body: { from: "/tmp", to: "/moved" } },
  uploadArchive: { body: "", headers: { "content-type": "application/x-tar" } },
  cloneRepository: { body: { url: "https://git.example/sample" } },
};

/** Required queries. `/tmp` is empty. */
const queries: Record<string, string> = {
  "GET files": "?path=sample",
  "PUT files": "?path=sample",
  "DELETE files": "?path=/tmp",
  "GET files/stat": "?path=/tmp",
};

export function sample(route: string): Sample {
  return samples[route] ?? {};
}

/** The path of a route in one sandbox; other ids in it do not exist. */
export function samplePath(
  id: string,
  { method, path }: Pick<VerbRow, "path"> & Partial<VerbRow>,
): string {
  const query = queries[`${method} ${path.split(":id/")[1]}`] ?? "";
  return `${path}${query}`
    .replace(":id", id)
    .replace(":checkpoint", `${id}.000000000000`)
    .replace(":port", "8000")
    .replace(":call", "a-call-of-nobody")
    .replaceAll(/:(?:process|session|terminal)\b/g, "nobodys");
}
