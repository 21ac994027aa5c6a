/** `GET /metrics`: what an operator watches, with a key of its own. Needs neither rights nor a tenant. */
import type { Context } from "hono";
import { type Env, readConfig } from "../../config.ts";
import type { Counts } from "../../protocol/directory.ts";
import { quotaOf } from "../../protocol/fields/quota.ts";
import { limits } from "../../protocol/limits.ts";
import { engineHealth } from "../../runtime/engine.ts";
import { queuedCalls } from "../admission.ts";
import { unauthenticated } from "../auth/auth.ts";
import { digestOf } from "../auth/keys.ts";
import { callsAtOnce } from "../calls-at-once.ts";
import type { ApiEnv } from "../http/context.ts";
import { keysObject } from "../http/objects.ts";
import { version } from "../http/version.ts";
import { bucketSeconds, calls } from "./registry.ts";
import { type Metric, metricsType, type Sample, writeMetrics } from "./text.ts";

export async function metrics(c: Context<ApiEnv>): Promise<Response> {
  requireMetricsKey(c.req.header("authorization"), c.env);
  const { env } = c;
  const [engine, tenants] = await Promise.all([ofEngine(env), ofTenants(env)]);
  const text = writeMetrics([
    gauge("berth_info", "The version of Berth.", [{ labels: { version }, value: 1 }]),
    ...ofCalls(),
    ...tenants,
    ...engine,
  ]);
  return c.body(text, 200, { "content-type": metricsType, "cache-control": "no-store" });
}

/** An administrator may read them, too. */
function requireMetricsKey(header: string | undefined, env: Env): void {
  const bearer = /^Bearer ([\x21-\x7e]{1,512})$/i.exec(header ?? "")?.[1];
  const { metricsKeys, administrators } = readConfig(env);
  const digest = bearer === undefined ? "" : digestOf(bearer);
  if (metricsKeys.has(digest) || administrators.has(digest)) return;
  throw unauthenticated(
    "The metrics need their own key; on one machine it is in <data>/metrics-key.",
  );
}

function ofCalls(): Metric[] {
  const seconds: Sample[] = [];
  for (const [verb, { buckets, count, seconds: sum }] of calls.timings) {
    for (const [index, bound] of bucketSeconds.entries()) {
      const labels = { verb, le: String(bound) };
      seconds.push({ suffix: "_bucket", labels, value: buckets[index] ?? 0 });
    }
    seconds.push({ suffix: "_bucket", labels: { verb, le: "+Inf" }, value: count });
    seconds.push({ suffix: "_sum", labels: { verb }, value: sum });
    seconds.push({ suffix: "_count", labels: { verb }, value: count });
  }
  const outcomes = [...calls.outcomes.values()];
  return [
    {
      ...{ name: "berth_calls_total", type: "counter", help: "Calls by verb and status." },
      samples: outcomes.map(({ verb, status, count }) => ({
        labels: { verb, status },
        value: count,
      })),
    },
    {
      ...{ name: "berth_call_seconds", type: "histogram" },
      help: "Time until a response began. That of acquireLease is the wait for the lease.",
      samples: seconds,
    },
    gauge("berth_calls_in_flight", "Calls whose response has not begun.", [
      { value: callsAtOnce.count },
    ]),
    gauge("berth_calls_queued", "Calls that wait for their tenant's turn.", [
      { value: queuedCalls() },
    ]),
  ];
}

/** A tenant is shown as long as it has sandboxes, also without a key. */
async function ofTenants(env: Env): Promise<Metric[]> {
  const { tenants: byKey, quotas } = readConfig(env);
  const known = await keysObject(env).tenants();
  const all = [...new Set([...byKey.values(), ...known])].sort();
  const shown = all.slice(0, limits.metricsTenantsMax);
  const counts = await Promise.all(shown.map((tenant) => countsOf(env, tenant)));
  const sandboxes: Sample[] = [];
  const bounds: Sample[] = [];
  for (const [index, tenant] of shown.entries()) {
    for (const [state, value] of Object.entries(counts[index]?.states ?? {}))
      sandboxes.push({ labels: { tenant, state }, value });
    for (const [quota, value] of Object.entries(quotaOf(quotas, tenant)))
      if (value !== undefined) bounds.push({ labels: { tenant, quota }, value });
  }
  return [
    gauge("berth_tenants", "Tenants that have a key or ever had a sandbox.", [
      { value: all.length },
    ]),
    gauge("berth_sandboxes", "Sandboxes by tenant and state.", sandboxes),
    gauge("berth_quota", "What the operator allows each tenant.", bounds),
  ];
}

async function countsOf(env: Env, tenant: string): Promise<Counts | undefined> {
  const counts = await env.DIRECTORY.getByName(tenant).counts();
  return "ok" in counts ? counts.ok : undefined;
}

async function ofEngine(env: Env): Promise<Metric[]> {
  const { engine } = readConfig(env);
  if (engine === undefined) return [];
  const up = (value: number) =>
    gauge("berth_engine_up", "Whether the engine of the machine answers.", [{ value }]);
  try {
    const health = await engineHealth({ baseUrl: engine.url, secret: engine.secret });
    const { containers, containersMax, disk, processes } = health;
    return [
      up(1),
      gauge("berth_containers", "Containers that run.", [{ value: containers }]),
      gauge("berth_containers_max", "How many may run.", [{ value: containersMax }]),
      gauge("berth_disk_free_bytes", "Free bytes below the data folder.", [
        { value: disk.freeBytes },
      ]),
      gauge("berth_disk_floor_bytes", "Below this nothing starts and nothing is saved.", [
        { value: disk.floorBytes },
      ]),
      gauge(
        "berth_process_resident_bytes",
        "Memory of the server's processes.",
        processes.map(({ name, residentBytes }) => ({
          labels: { process: name },
          value: residentBytes,
        })),
      ),
    ];
  } catch {
    return [up(0)];
  }
}

function gauge(name: string, help: string, samples: Sample[]): Metric {
  return { name, type: "gauge", help, samples };
}
