/**
 * Owns what of a record is told to callers. Secrets, addresses and the environment are not.
 */
import type { Sandbox } from "../../protocol/sandbox.ts";
import type { SandboxRecord } from "./record.ts";

export function view(record: SandboxRecord): Sandbox {
  const { spec, state } = record;
  return {
    id: spec.id,
    state: state.name,
    stateSince: new Date(state.since).toISOString(),
    createdAt: new Date(spec.createdAt).toISOString(),
    ...("reason" in state ? { reason: state.reason } : {}),
    ...(state.name === "failed" ? { restartable: state.restartable } : {}),
    ...(state.name === "running"
      ? {
          incarnation: state.life.incarnation,
          files: state.life.files,
          isolation: state.life.isolation,
          notes: state.life.notes,
        }
      : {}),
    ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }),
    ...(spec.image === undefined ? {} : { image: spec.image }),
    network: spec.network,
  };
}
