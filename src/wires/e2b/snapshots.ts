/**
 * Snapshots outlive the sandbox that they were made of: a paused sandbox that nobody sees holds their files, and the
 * snapshot's id is that of its checkpoint.
 */
import type { Checkpoint } from "../../protocol/checkpoint.ts";
import { limits } from "../../protocol/limits.ts";
import type { Sandbox } from "../../protocol/sandbox.ts";
import type { ApiCalls } from "../api-calls.ts";
import type { ControlCall } from "./control.ts";
import { WireError } from "./errors.ts";
import { cutPage, readAll } from "./list.ts";
import { wireKeys } from "./metadata.ts";
import { read, requireRunning } from "./sandboxes.ts";

const snapshotKey = "berth.e2b/snapshot";
const namespace = "local";
/** One that its maker could not finish ends by itself. */
const holderLifeMs = 10 * 60_000;

export async function create({ calls, id, body }: ControlCall): Promise<Response> {
  const { name } = body;
  if (name !== undefined && (typeof name !== "string" || !/^[\w.-]{1,100}$/.test(name))) {
    throw new WireError(400, "name must be 1 to 100 letters, digits and . _ -");
  }
  await read(calls, id);
  const snapshotID = await withCheckpoint(calls, id, (from) => hold(calls, id, from, name));
  return Response.json({ snapshotID, names: namesOf(name) }, { status: 201 });
}

/** ApiCalls `use` with a checkpoint of the sandbox, and removes that in any case. */
export async function withCheckpoint<Result>(
  calls: ApiCalls,
  id: string,
  use: (checkpoint: string) => Promise<Result>,
): Promise<Result> {
  const path = `/v1/sandboxes/${id}/checkpoints`;
  const checkpoint = await calls.json<Checkpoint>("POST", path, {});
  try {
    return await use(checkpoint.id);
  } finally {
    // One that is still in use ends with its sandbox.
    await calls.json("DELETE", `${path}/${checkpoint.id}`).catch(() => undefined);
  }
}

async function hold(
  calls: ApiCalls,
  id: string,
  from: string,
  name: string | undefined,
): Promise<string> {
  const holder = await calls.json<Sandbox>("POST", "/v1/sandboxes", {
    from,
    metadata: { [wireKeys.template]: null, [wireKeys.snapshotOf]: id },
    wake: "never",
    onIdle: "none",
    endAfterMs: holderLifeMs,
    onEnd: "destroy",
    waitMs: limits.waitMaxMs,
  });
  await requireRunning(calls, holder);
  const path = `/v1/sandboxes/${holder.id}`;
  const checkpoint = await calls.json<Checkpoint>("POST", `${path}/checkpoints`, {});
  await calls.json("PATCH", `${path}/metadata`, {
    [snapshotKey]: checkpoint.id,
    ...(name === undefined ? {} : { [wireKeys.snapshotName]: name }),
  });
  await calls.json("POST", `${path}/pause?force=true`);
  return checkpoint.id;
}

export async function list({ calls, query }: ControlCall): Promise<Response> {
  const [source, name] = [query.get("sandboxID"), query.get("name")];
  const holders = await readAll(calls, {
    ...(source === null ? {} : { [wireKeys.snapshotOf]: source.split("-", 1)[0] ?? "" }),
    ...(name === null ? {} : { [wireKeys.snapshotName]: name }),
  });
  const all = holders
    .filter(({ metadata }) => metadata[snapshotKey] !== undefined)
    .sort((a, b) => (positionOf(a) < positionOf(b) ? 1 : -1));
  const { page, headers } = cutPage(all, query, (holder) => [holder.createdAt, holder.id]);
  const snapshots = page.map(({ metadata }) => ({
    snapshotID: metadata[snapshotKey],
    names: namesOf(metadata[wireKeys.snapshotName]),
  }));
  return Response.json(snapshots, { headers });
}

function positionOf({ createdAt, id }: { createdAt: string; id: string }): string {
  return `${createdAt} ${id}`;
}

export async function remove({ calls, id }: ControlCall): Promise<Response> {
  const holder = /^([a-z][a-z0-9]{23})\./.exec(id)?.[1];
  const sandbox =
    holder === undefined ? undefined : await read(calls, holder).catch(() => undefined);
  if (sandbox?.metadata[snapshotKey] !== id) {
    throw new WireError(404, `snapshot ${id} was not found`);
  }
  await calls.json("DELETE", `/v1/sandboxes/${sandbox.id}?force=true`);
  return new Response(null, { status: 204 });
}

function namesOf(name: string | undefined): string[] {
  return name === undefined ? [] : [`${namespace}/${name}`];
}
