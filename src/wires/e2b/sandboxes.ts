/** Creates, shows, pauses, connects and ends sandboxes in the form of E2B's wire. */
import { limits } from "../../protocol/limits.ts";
import type { Sandbox } from "../../protocol/sandbox.ts";
import type { ApiCalls } from "../api-calls.ts";
import { ApiRefusal } from "../api-calls.ts";
import type { ControlCall } from "./control.ts";
import { WireError } from "./errors.ts";
import { nameOf, readMetadata, wireKeys, writeMetadata } from "./metadata.ts";

/** Clients compare it to know what the daemon can: everything. */
const envdVersion = "0.6.13";
/** A start waits that often as long as one call may. */
const startWaitsMax = 2;
export const home = "/home/user";
const identity = { HOME: home, USER: "user", LOGNAME: "user" };
const second = 1000;

/** Fields that cannot be kept are refused, so that nobody relies on them. */
const unserved = ["mcp", "iam", "volumeMounts", "autoPauseMemory"] as const;

export async function create({ calls, body }: ControlCall, timeoutS: number): Promise<Response> {
  refuseUnserved(body);
  const template = textField(body, "templateID", "base");
  const from = await originOf(calls, template);
  const autoPause = body.autoPause === true;
  const autoResume = (body.autoResume as { enabled?: unknown } | undefined)?.enabled === true;
  const endAfterMs = timeoutOf(body, timeoutS) * second;
  if (endAfterMs < second) throw new WireError(400, "timeout must be at least 1 second");
  const sandbox = await calls.json<Sandbox>("POST", "/v1/sandboxes", {
    ...from,
    env: { ...identity, ...(body.envVars as Record<string, string> | undefined) },
    metadata: writeMetadata(body.metadata, { [wireKeys.template]: template }),
    network: networkOf(body),
    endAfterMs,
    onEnd: autoPause ? "pause" : "destroy",
    onIdle: "none",
    wake: autoResume ? "auto" : "never",
    publicPorts: true,
    waitMs: limits.waitMaxMs,
  });
  await requireRunning(calls, sandbox);
  return Response.json(await withToken(calls, sandbox), { status: 201 });
}

/** Clients do not ask whether a sandbox is ready: one that does not come up is destroyed. */
export async function requireRunning(calls: ApiCalls, created: Sandbox): Promise<void> {
  let sandbox = created;
  for (let waits = 1; sandbox.state === "starting" && waits < startWaitsMax; waits += 1) {
    sandbox = await calls.json<Sandbox>("POST", `/v1/sandboxes/${sandbox.id}/start`);
  }
  const { id, state, reason } = sandbox;
  if (state === "running") return;
  await calls.json("DELETE", `/v1/sandboxes/${id}?force=true`);
  if (state === "starting") throw new WireError(504, `sandbox ${id} did not start in time`);
  throw new WireError(500, `sandbox ${id} did not start: ${reason ?? state}`);
}

export async function get({ calls, id }: ControlCall): Promise<Response> {
  return Response.json(detailOf(await read(calls, id)));
}

export async function kill({ calls, id }: ControlCall): Promise<Response> {
  await read(calls, id);
  await calls.json("DELETE", `/v1/sandboxes/${id}?force=true`);
  return new Response(null, { status: 204 });
}

/** Unlike everywhere else, a sandbox that does not run is unknown here. */
export async function setTimeout({ calls, id, body }: ControlCall): Promise<Response> {
  await moveEnd(calls, id, Math.max(0, timeoutOf(body)), false);
  return new Response(null, { status: 204 });
}

export async function refresh({ calls, id, body }: ControlCall): Promise<Response> {
  const { duration = 60 } = body;
  if (typeof duration !== "number" || !(duration >= 0 && duration <= 3600)) {
    throw new WireError(400, "duration must be a number of seconds from 0 to 3600");
  }
  await moveEnd(calls, id, duration, true);
  return new Response(null, { status: 204 });
}

async function moveEnd(
  calls: ApiCalls,
  id: string,
  seconds: number,
  onlyLater: boolean,
): Promise<Sandbox> {
  const call = { afterMs: Math.round(seconds * second), onlyLater };
  const moved = await calls.unless(
    "not_running",
    calls.json<Sandbox>("PUT", `/v1/sandboxes/${id}/end`, call),
  );
  if (moved === undefined) throw unknown(id);
  return moved;
}

/** Memory is not kept: processes end, files stay. */
export async function pause({ calls, id }: ControlCall): Promise<Response> {
  const { state } = await read(calls, id);
  if (state === "paused" || state === "pausing" || state === "failed") {
    throw new WireError(409, `sandbox ${id} is paused already`);
  }
  await calls.json("POST", `/v1/sandboxes/${id}/pause?force=true`);
  return new Response(null, { status: 204, headers: { "berth-memory": "not-kept" } });
}

export async function connect({ calls, id, body }: ControlCall): Promise<Response> {
  const seconds = Math.max(0, timeoutOf(body, 300));
  const { state } = await read(calls, id);
  const ran = state === "running" || state === "starting";
  if (state !== "running") await start(calls, id);
  const sandbox = await moveEnd(calls, id, seconds, ran);
  return Response.json(await withToken(calls, sandbox), { status: ran ? 200 : 201 });
}

export async function resume({ calls, id, body }: ControlCall): Promise<Response> {
  const { state } = await read(calls, id);
  if (state === "running") throw new WireError(409, `sandbox ${id} runs already`);
  await start(calls, id);
  const sandbox = await moveEnd(calls, id, Math.max(0, timeoutOf(body, 15)), false);
  return Response.json(await withToken(calls, sandbox), { status: 201 });
}

async function start(calls: ApiCalls, id: string): Promise<void> {
  const sandbox = await calls.json<Sandbox>("POST", `/v1/sandboxes/${id}/start`);
  if (sandbox.state === "running") return;
  throw new WireError(503, `sandbox ${id} is ${sandbox.state} and does not run yet`);
}

/** Throws for one that was destroyed. */
export async function read(calls: ApiCalls, id: string): Promise<Sandbox> {
  const sandbox = await calls.json<Sandbox>("GET", `/v1/sandboxes/${encodeURIComponent(id)}`);
  if (sandbox.state === "destroying" || sandbox.state === "destroyed") throw unknown(id);
  return sandbox;
}

export function unknown(id: string): WireError {
  return new WireError(404, `sandbox ${id} was not found`);
}

export async function withToken(calls: ApiCalls, { id, metadata }: Sandbox) {
  return {
    templateID: metadata[wireKeys.template] ?? "base",
    sandboxID: id,
    clientID: "berth",
    envdVersion,
    envdAccessToken: await calls.host.tokenOf(calls.caller, id),
    trafficAccessToken: null,
    domain: null,
  };
}

export function listedOf(sandbox: Sandbox) {
  const { id, state, metadata, createdAt, stateSince, endsAt } = sandbox;
  const runs = state === "running";
  return {
    templateID: metadata[wireKeys.template] ?? "base",
    ...(nameOf(metadata) === undefined ? {} : { alias: nameOf(metadata) }),
    sandboxID: id,
    clientID: "berth",
    startedAt: runs ? stateSince : createdAt,
    endAt: endsAt ?? (runs ? farAway : stateSince),
    envdVersion,
    cpuCount: 1,
    memoryMB: 512,
    diskSizeMB: 1024,
    state: runs || state === "starting" ? "running" : "paused",
    metadata: readMetadata(metadata),
    volumeMounts: [],
  };
}

/** Stands for the end of a sandbox that has none. */
const farAway = "9999-12-31T23:59:59.000Z";

function detailOf(sandbox: Sandbox) {
  const { network, wake, onEnd } = sandbox;
  return {
    ...listedOf(sandbox),
    allowInternetAccess: network.internet,
    network: { allowPublicTraffic: sandbox.publicPorts === true },
    lifecycle: { autoResume: wake === "auto", onTimeout: onEnd === "pause" ? "pause" : "kill" },
  };
}

/** A snapshot's id is a checkpoint's; `base` is a sandbox without files of its own. */
async function originOf(calls: ApiCalls, template: string): Promise<{ from?: string }> {
  if (template === "base") return {};
  const holder = /^([a-z][a-z0-9]{23})\./.exec(template)?.[1];
  if (holder === undefined) throw new WireError(404, `template ${template} was not found`);
  const path = `/v1/sandboxes/${holder}/checkpoints/${template}`;
  const found = await calls.json("GET", path).catch((thrown: unknown) => {
    if (thrown instanceof ApiRefusal) return undefined;
    throw thrown;
  });
  if (found === undefined) throw new WireError(404, `snapshot ${template} was not found`);
  return { from: template };
}

function refuseUnserved(body: Record<string, unknown>): void {
  if (body.autoPauseMemory === false && body.autoPause !== true) {
    throw new WireError(400, "autoPauseMemory: needs autoPause");
  }
  for (const name of unserved) {
    const value = body[name];
    const isUsed = Array.isArray(value) ? value.length > 0 : typeof value === "object";
    if (value !== null && isUsed) throw new WireError(400, `${name} is not served here`);
  }
}

/** All of the internet or none: rules about hosts would not be held. */
function networkOf({ allow_internet_access, network }: Record<string, unknown>) {
  const { allowPublicTraffic: _public, ...rules } = (network ?? {}) as Record<string, unknown>;
  const isAllDenied =
    JSON.stringify(rules.denyOut) === '["0.0.0.0/0"]' && !hasItems(rules.allowOut);
  if (isAllDenied) delete rules.denyOut;
  const rule = Object.keys(rules).find((name) => rules[name] !== null && hasItems(rules[name]));
  if (rule !== undefined) throw new WireError(400, `network.${rule} cannot be held here`);
  return { internet: allow_internet_access !== false && !isAllDenied };
}

function hasItems(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.keys(value).length > 0;
  return value !== undefined && value !== null && value !== "";
}

export function timeoutOf({ timeout }: Record<string, unknown>, usualS?: number): number {
  const seconds = timeout ?? usualS;
  if (typeof seconds === "number" && Number.isFinite(seconds)) return seconds;
  throw new WireError(400, "timeout must be a number of seconds");
}

export function textField(body: Record<string, unknown>, name: string, usual: string): string {
  const value = body[name] ?? usual;
  if (typeof value === "string" && value !== "") return value;
  throw new WireError(400, `${name} must be a text`);
}
