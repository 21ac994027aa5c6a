/** Shows a sandbox to callers, without secrets, addresses and environment. */
import type { Sandbox } from "../../protocol/sandbox.ts";
import type { Lease } from "../lease/lease.ts";
import type { VersionedMetadata } from "../metadata/patch.ts";
import type { SandboxRecord } from "./record.ts";

export function viewSandbox(
  record: SandboxRecord,
  metadata: VersionedMetadata,
  lease: Lease,
  plan?: string,
): Sandbox {
  const { spec, state } = record;
  const { cwd, user, template, image, size, network, idleTimeoutMs, onIdle, maxLifetimeMs, wake } =
    spec;
  const { destroyPausedAfterMs, checkpointEveryMs, keepCheckpoints, settingsVersion } = spec;
  const { scope, client, madeBy, endAfterMs, onEnd, publicPorts, sudo, from } = spec;
  const endsAt = state.name === "running" ? state.endsAt : undefined;
  return {
    id: spec.id,
    state: state.name,
    stateSince: new Date(state.since).toISOString(),
    createdAt: new Date(spec.createdAt).toISOString(),
    ...("reason" in state ? { reason: state.reason } : {}),
    ...(state.name === "failed" ? { restartable: state.restartable } : {}),
    ...(state.name === "failed" && state.message !== undefined ? { message: state.message } : {}),
    ...(state.name === "running"
      ? {
          incarnation: state.life.incarnation,
          files: state.life.files,
          isolation: state.life.isolation,
          notes: state.life.notes,
        }
      : {}),
    ...(cwd === undefined ? {} : { cwd }),
    ...(user === undefined ? {} : { user }),
    ...(template === undefined ? {} : { template }),
    ...(image === undefined ? {} : { image }),
    ...(size === undefined ? {} : { size: size.name }),
    ...(maxLifetimeMs === undefined ? {} : { maxLifetimeMs }),
    ...(from === undefined ? {} : { from }),
    ...(destroyPausedAfterMs === undefined ? {} : { destroyPausedAfterMs }),
    ...(typeof checkpointEveryMs === "number" ? { checkpointEveryMs } : {}),
    ...(keepCheckpoints === undefined ? {} : { keepCheckpoints }),
    ...(settingsVersion === undefined ? {} : { settingsVersion }),
    ...(endAfterMs === undefined ? {} : { endAfterMs }),
    ...(onEnd === undefined ? {} : { onEnd }),
    ...(endsAt === undefined ? {} : { endsAt: new Date(endsAt).toISOString() }),
    ...(publicPorts === true ? { publicPorts } : {}),
    ...(sudo === false ? { sudo } : {}),
    ...(scope === undefined ? {} : { scope }),
    ...(client === undefined ? {} : { client }),
    ...toRestored(record),
    ...(madeBy === undefined ? {} : { madeBy }),
    network,
    idleTimeoutMs,
    onIdle,
    wake,
    metadata: { ...metadata.map },
    metadataVersion: metadata.version,
    ...(plan === undefined ? {} : { plan }),
    ...(lease.state.name === "held"
      ? {
          lease: {
            holder: lease.state.grant.holder,
            expiresAt: new Date(lease.state.expiresAt).toISOString(),
          },
        }
      : {}),
  };
}

/** A fork starts with the files of a checkpoint, too. */
function toRestored({ spec, restoredAt }: SandboxRecord): { restoredAt?: string } {
  const since = restoredAt ?? (spec.base === undefined ? undefined : spec.createdAt);
  return since === undefined ? {} : { restoredAt: new Date(since).toISOString() };
}

/** Whether it has run, so that a later start no longer needs the tree that it was created from. When in doubt it has not. */
export function hasOwnFiles({ state }: SandboxRecord): boolean {
  if (state.name === "paused") return state.reason !== "created";
  return state.name !== "starting" && state.name !== "failed";
}
