/**
 * Owns the table of bad calls: what is wrong with each, and with which status, code and field it is refused.
 * Does not own the sandbox that they are sent to: `held` is leased by the holder whose token is there.
 */
import type { ErrorCode } from "../../src/protocol/errors.ts";
import { limits } from "../../src/protocol/limits.ts";
import { badFiles } from "./bad-files.ts";

export type Secrets = { mine: string; released: string; others: string; destroyed: string };

export type BadCall = [
  what: string,
  call: [method: string, tail: string, body?: unknown, headers?: Record<string, string>],
  refused: [status: number, code: ErrorCode, field?: string],
];

const huge = Number.MAX_SAFE_INTEGER;
const keys = (count: number, from = 0) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n + from}`, "v"]));

const bad = (field: string): BadCall[2] => [400, "bad_request", field];
const acquire = (body: unknown): BadCall[1] => ["POST", "/lease", body];
const renew = (body: unknown, token: string): BadCall[1] => [
  "PUT",
  "/lease",
  body,
  { "berth-lease": token },
];
const patch = (body: unknown, headers = {}): BadCall[1] => ["PATCH", "/metadata", body, headers];
const exec = (headers: Record<string, string>): BadCall[1] => [
  "POST",
  "/exec",
  { command: "true" },
  headers,
];
const lost: BadCall[2] = [410, "lease_lost"];
const unknown: BadCall[2] = [404, "not_found"];
const upgrade = { upgrade: "websocket" };
const raw = { "content-type": "application/octet-stream" };
const one = "/processes/nobodys";

export const badCreates: [what: string, body: unknown, field: string][] = [
  ["a field that create does not know", { colour: "red" }, "colour"],
  ["an idle time of text", { idleTimeoutMs: "60000" }, "idleTimeoutMs"],
  ["an idle time below the least", { idleTimeoutMs: 999 }, "idleTimeoutMs"],
  ["an idle time of eight days", { idleTimeoutMs: limits.idleTimeoutMaxMs + 1 }, "idleTimeoutMs"],
  ["a fraction of a lifetime", { maxLifetimeMs: 5000.5 }, "maxLifetimeMs"],
  ["a negative lifetime", { maxLifetimeMs: -1 }, "maxLifetimeMs"],
  ["a lifetime beyond all numbers", '{"maxLifetimeMs":1e999}', "maxLifetimeMs"],
  ["an unknown end of idling", { onIdle: "sleep" }, "onIdle"],
  ["an unknown wake", { wake: "always" }, "wake"],
  ["a start that is text", { start: "false" }, "start"],
  ["a wait that is too long", { waitMs: limits.waitMaxMs + 1 }, "waitMs"],
  ["metadata that is a list", { metadata: ["a"] }, "metadata"],
  ["metadata with a number", { metadata: { a: 1 } }, "metadata.a"],
  ["metadata with 65 keys", { metadata: keys(65) }, "metadata"],
  ["a variable with a NUL", { env: { A: "\0" } }, "env.A"],
  ["an image that is a path", { image: "../../etc" }, "image"],
];

export function badCalls({ mine, released, others, destroyed }: Secrets): BadCall[] {
  return [
    ["a lease for text", acquire({ ttlMs: "30000" }), bad("ttlMs")],
    ["a lease for less than the least", acquire({ ttlMs: limits.leaseTtlMinMs - 1 }), bad("ttlMs")],
    ["a lease for more than the most", acquire({ ttlMs: limits.leaseTtlMaxMs + 1 }), bad("ttlMs")],
    ["a lease for ever", acquire({ ttlMs: huge }), bad("ttlMs")],
    ["a lease beyond all numbers", acquire('{"ttlMs":1e999}'), bad("ttlMs")],
    ["a lease for no number", acquire({ ttlMs: null }), bad("ttlMs")],
    ["a fraction of a lease", acquire({ ttlMs: 1500.5 }), bad("ttlMs")],
    ["a negative lease", acquire({ ttlMs: -30_000 }), bad("ttlMs")],
    ["a negative wait", acquire({ waitMs: -1 }), bad("waitMs")],
    ["a wait that is too long", acquire({ waitMs: limits.waitMaxMs + 1 }), bad("waitMs")],
    ["a fraction of a wait", acquire({ waitMs: 0.5 }), bad("waitMs")],
    ["a negative queue", acquire({ queueMs: -1 }), bad("queueMs")],
    ["a queue for ever", acquire({ queueMs: limits.leaseQueueMaxMs + 1 }), bad("queueMs")],
    ["a holder without a name", acquire({ holder: "" }), bad("holder")],
    ["a holder with a long name", acquire({ holder: "h".repeat(129) }), bad("holder")],
    ["a holder with a line end", acquire({ holder: "a\nb" }), bad("holder")],
    ["a holder of half a letter", acquire('{"holder":"\\ud800"}'), bad("holder")],
    ["a holder that is a number", acquire({ holder: 7 }), bad("holder")],
    ["a short ticket", acquire({ ticket: "t".repeat(15) }), bad("ticket")],
    ["a long ticket", acquire({ ticket: "t".repeat(65) }), bad("ticket")],
    ["a ticket of a socket", acquire({ ticket: `~${"t".repeat(30)}` }), bad("ticket")],
    ["a field that a lease does not have", acquire({ ttl: 5000 }), bad("ttl")],
    ["__proto__ in a lease", acquire('{"__proto__":{"ttlMs":5000}}'), bad("__proto__")],
    ["a list instead of a lease", acquire("[]"), bad("body")],
    ["half a lease", acquire('{"ttlMs":'), [400, "bad_json"]],
    [
      "a lease in a form",
      ["POST", "/lease", "ttlMs=1", { "content-type": "application/x-www-form-urlencoded" }],
      [415, "unsupported_type"],
    ],
    [
      "a ticket of a lease that has ended",
      acquire({ ticket: "ticket-that-was-released" }),
      [410, "lease_lost"],
    ],

    ["a renewal without a token", ["PUT", "/lease", {}], bad("Berth-Lease")],
    ["a renewal with an empty token", renew({}, ""), bad("Berth-Lease")],
    ["a renewal of a released lease", renew({}, released), lost],
    ["a renewal with a token of another sandbox", renew({}, others), lost],
    ["a renewal with a token of a destroyed one", renew({}, destroyed), lost],
    ["a renewal for too long", renew({ ttlMs: limits.leaseTtlMaxMs + 1 }, mine), bad("ttlMs")],
    ["a renewal for a fraction", renew({ ttlMs: 1000.1 }, mine), bad("ttlMs")],
    ["a renewal with a holder", renew({ holder: "me" }, mine), bad("holder")],

    ["a release without a token", ["DELETE", "/lease"], bad("Berth-Lease")],
    ["a release of nobody's", ["DELETE", "/lease", undefined, { "berth-lease": "x" }], lost],
    [
      "a release of another sandbox's",
      ["DELETE", "/lease", undefined, { "berth-lease": others }],
      lost,
    ],
    [
      "a release by perhaps",
      ["DELETE", "/lease?force=perhaps", undefined, { "berth-lease": mine }],
      bad("force"),
    ],
    ["a break without a reason", ["DELETE", "/lease?break=true"], bad("reason")],
    ["a break with an empty reason", ["DELETE", "/lease?break=true&reason="], bad("reason")],
    [
      "a break with a long reason",
      ["DELETE", `/lease?break=true&reason=${"r".repeat(limits.reasonCharsMax + 1)}`],
      bad("reason"),
    ],
    ["a break by perhaps", ["DELETE", "/lease?break=perhaps&reason=r"], bad("break")],

    ["an exec that waits for text", exec({ "berth-wait-ms": "soon" }), bad("Berth-Wait-Ms")],
    ["an exec that waits too long", exec({ "berth-wait-ms": "25001" }), bad("Berth-Wait-Ms")],
    ["an exec that waits backwards", exec({ "berth-wait-ms": "-1" }), bad("Berth-Wait-Ms")],
    ["an exec that waits a fraction", exec({ "berth-wait-ms": "1.5" }), bad("Berth-Wait-Ms")],
    ["an exec that waits for nothing", exec({ "berth-wait-ms": "" }), bad("Berth-Wait-Ms")],
    ["an exec that waits in hexadecimal", exec({ "berth-wait-ms": "0x10" }), bad("Berth-Wait-Ms")],
    ["an exec with an empty token", exec({ "berth-lease": "" }), bad("Berth-Lease")],
    ["an exec of a released lease", exec({ "berth-lease": released }), lost],
    ["an exec of another sandbox's lease", exec({ "berth-lease": others }), lost],
    ["an exec with 10 kB of a token", exec({ "berth-lease": "t".repeat(10_000) }), lost],
    ["an exec without the lease", exec({}), [423, "lease_held"]],
    ["a pause by perhaps", ["POST", "/pause?force=perhaps"], bad("force")],
    ["a destroy by perhaps", ["DELETE", "?force=2"], bad("force")],
    ["a wake by perhaps", ["POST", "/exec?wake=perhaps", { command: "true" }], bad("wake")],

    ["metadata that is a number", patch({ a: 1 }), bad("a")],
    ["metadata in metadata", patch({ a: { b: "c" } }), bad("a")],
    ["a list in metadata", patch({ a: ["b"] }), bad("a")],
    ["a 65th key", patch(keys(62, 100)), bad("metadata")],
    ["a key of 129 bytes", patch({ ["k".repeat(129)]: "v" }), bad("k".repeat(129))],
    ["a key without letters", patch({ "": "v" }), bad("body")],
    ["a key with a space", patch({ "a b": "v" }), bad("a b")],
    ["a key of other letters", patch({ é: "v" }), bad("é")],
    ["a key to be removed that cannot be", patch({ "a b": null }), bad("a b")],
    ["a value of 1025 bytes", patch({ a: "é".repeat(512).concat("x") }), bad("a")],
    ["a value of half a letter", patch('{"a":"\\udfff"}'), bad("a")],
    ["a good key beside a bad one", patch({ good: "1", "b d": "2" }), bad("b d")],
    ["__proto__ as metadata", patch('{"__proto__":"x"}'), bad("__proto__")],
    ["__proto__ in other letters", patch('{"\\u005f_proto__":"x"}'), bad("__proto__")],
    ["more than 16 KiB", patch(bigMap()), bad("metadata")],
    ["metadata that is a list", patch("[]"), bad("body")],
    ["metadata that is null", patch("null"), bad("body")],
    ["a version of words", patch({ a: "1" }, { "if-match": "now" }), bad("If-Match")],
    ["a version of anything", patch({ a: "1" }, { "if-match": "*" }), bad("If-Match")],
    ["a weak version", patch({ a: "1" }, { "if-match": 'W/"1"' }), bad("If-Match")],
    ["two versions", patch({ a: "1" }, { "if-match": '"1", "2"' }), bad("If-Match")],
    ["a negative version", patch({ a: "1" }, { "if-match": "-1" }), bad("If-Match")],
    ["a version of 2^60", patch({ a: "1" }, { "if-match": String(2 ** 60) }), bad("If-Match")],
    ["another version", patch({ a: "1" }, { "if-match": '"7"' }), [412, "version_mismatch"]],
    ["a replacement of no version", ["PUT", "/metadata", {}], [428, "precondition_required"]],

    ["a token without rights", ["POST", "/tokens", { rights: [] }], bad("rights")],
    ["a token of no call", ["POST", "/tokens"], bad("rights")],
    ["a token of unknown rights", ["POST", "/tokens", { rights: ["root"] }], bad("rights.0")],
    ["a token of twice the same", ["POST", "/tokens", { rights: ["read", "read"] }], bad("rights")],
    ["a token for a moment", ["POST", "/tokens", { rights: ["read"], ttlMs: 1 }], bad("ttlMs")],
    ["a token for ever", ["POST", "/tokens", { rights: ["read"], ttlMs: huge }], bad("ttlMs")],

    ["events after words", ["GET", "/events?after=then"], bad("after")],
    ["events before all", ["GET", "/events?after=-1"], bad("after")],
    ["no events", ["GET", "/events?limit=0"], bad("limit")],
    ["too many events", ["GET", "/events?limit=1001"], bad("limit")],
    ["events of an unknown kind", ["GET", "/events?kind=lease"], bad("kind")],
    [
      "a stream after words",
      ["GET", "/events?follow=1", undefined, { "last-event-id": "then" }],
      bad("after"),
    ],
    ...badWork(mine),
    ...badFiles(mine),
    ["a socket without an upgrade", ["GET", "/lease/connect"], [426, "upgrade_required"]],
    [
      "a socket of a nameless holder",
      ["GET", "/lease/connect?holder=", undefined, { upgrade: "websocket" }],
      bad("holder"),
    ],
    [
      "a socket with a wrong ticket",
      ["GET", "/lease/connect?ct=x", undefined, { upgrade: "websocket" }],
      [401, "unauthenticated"],
    ],
  ];
}

/** The holder's own calls, so that nothing but their form refuses them. */
function badWork(mine: string): BadCall[] {
  const lease = { "berth-lease": mine };
  const held = (method: string, tail: string, body?: unknown, more = {}): BadCall[1] => [
    ...([method, tail, body] as const),
    { ...lease, ...more },
  ];
  const start = (body: unknown): BadCall[1] => held("POST", "/processes", body);
  const session = (body: unknown): BadCall[1] => held("POST", "/sessions", body);
  const terminal = (body: unknown): BadCall[1] => held("POST", "/terminals", body);
  return [
    ["a process without a command", start({}), bad("command")],
    ["a process with both commands", start({ command: "a", argv: ["a"] }), bad("command")],
    ["a process with a standard input", start({ command: "a", stdin: "b" }), bad("stdin")],
    ["a process with an id of its own", start({ command: "a", id: "p1" }), bad("id")],
    ["a process with a tiny log", start({ command: "a", logBytesMax: 1 }), bad("logBytesMax")],
    ["a process with a log of text", start({ command: "a", logBytesMax: "1" }), bad("logBytesMax")],
    ["a process that waits in vain", start({ command: "a", onFull: "wait" }), bad("onFull")],
    ["a process for no time", start({ command: "a", timeoutMs: 0 }), bad("timeoutMs")],
    ["a process under no lease", ["POST", "/processes", { command: "a" }], [423, "lease_held"]],
    [
      "a process under a key with a space",
      held("POST", "/processes", { command: "a" }, { "idempotency-key": "a b" }),
      bad("Idempotency-Key"),
    ],
    ["a process by a name of dots", ["GET", "/processes/..%2F.."], bad("process")],
    ["a process by a long name", ["GET", `/processes/${"p".repeat(65)}`], bad("process")],
    ["a process that nobody made", ["GET", one], unknown],
    ["processes in a strange state", ["GET", "/processes?state=tired"], bad("state")],
    ["processes of a nameless session", ["GET", "/processes?session="], bad("session")],
    ["processes by colour", ["GET", "/processes?colour=red"], bad("colour")],
    ["logs before the first byte", ["GET", `${one}/logs?after=-1`], bad("after")],
    ["logs after words", ["GET", `${one}/logs?after=then`], bad("after")],
    ["logs of a third stream", ["GET", `${one}/logs?stream=stdlog`], bad("stream")],
    ["logs that follow perhaps", ["GET", `${one}/logs?follow=yes`], bad("follow")],
    ["logs by an offset of no stream", ["GET", `${one}/logs?offset=5`], bad("offset")],
    [
      "raw logs of both streams",
      ["GET", `${one}/logs`, undefined, { accept: "application/octet-stream" }],
      bad("stream"),
    ],
    [
      "a stream of logs after words",
      ["GET", `${one}/logs?follow=1`, undefined, { "last-event-id": "then" }],
      bad("after"),
    ],
    ["a wait for luck", ["GET", `${one}/wait?for=luck`], bad("for")],
    ["a wait for no port", ["GET", `${one}/wait?for=port:0`], bad("for")],
    ["a wait for no text", ["GET", `${one}/wait?for=log:`], bad("for")],
    ["a wait for a day", ["GET", `${one}/wait?timeoutMs=86400000`], bad("timeoutMs")],
    ["input as JSON", held("POST", `${one}/stdin`, {}), [415, "unsupported_type"]],
    [
      "input before the first byte",
      held("POST", `${one}/stdin?offset=-1`, "a", raw),
      bad("offset"),
    ],
    ["input that ends perhaps", held("POST", `${one}/stdin?eof=true`, "a", raw), bad("eof")],
    ["an unknown signal", held("POST", `${one}/signal`, { signal: "SIGFOO" }), bad("signal")],
    ["a signal by number", held("POST", `${one}/signal`, { signal: 9 }), bad("signal")],

    ["a session by a bad name", session({ id: "a b" }), bad("id")],
    ["a session by no name", session({ id: "" }), bad("id")],
    ["a session with a program", session({ argv: ["a"] }), bad("argv")],
    ["a session of hours", session({ commandTimeoutMs: 1e9 }), bad("commandTimeoutMs")],
    ["a session in no folder", session({ cwd: "" }), bad("cwd")],
    ["arguments in a session", held("POST", "/sessions/a/exec", { argv: ["a"] }), bad("command")],
    ["a command in a nameless session", held("POST", "/sessions/-/exec", {}), bad("session")],

    ["a terminal without width", terminal({ cols: 0 }), bad("cols")],
    ["a terminal of half a row", terminal({ rows: 1.5 }), bad("rows")],
    ["a terminal wider than all", terminal({ cols: 1001 }), bad("cols")],
    ["a terminal with a command", terminal({ command: "a" }), bad("command")],
    ["a terminal of no program", terminal({ argv: [] }), bad("argv")],
    ["a size without rows", ["PATCH", "/terminals/a", { cols: 80 }], bad("rows")],
    ["a size of no terminal", ["PATCH", "/terminals/a", { cols: 80, rows: 24 }], unknown],
    ["a screen of no terminal", ["GET", "/terminals/nobodys/screen"], unknown],
    ["the end of no terminal", ["DELETE", "/terminals/nobodys"], unknown],
    [
      "a terminal's socket without an upgrade",
      ["GET", "/terminals/a/connect"],
      [426, "upgrade_required"],
    ],
    [
      "a terminal's socket that paints",
      ["GET", "/terminals/a/connect?mode=painter", undefined, upgrade],
      bad("mode"),
    ],
    [
      "a terminal's socket with a wrong ticket",
      ["GET", "/terminals/a/connect?ct=x", undefined, upgrade],
      [401, "unauthenticated"],
    ],
    ["a socket of no terminal", ["GET", "/terminals/a/connect", undefined, upgrade], unknown],
  ];
}

function bigMap(): Record<string, string> {
  return Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`b${n}`, "x".repeat(1_000)]));
}
