/** Saves a running sandbox every `checkpointEveryMs`, and removes checkpoints beyond `keepCheckpoints`. */
import type { Deadline } from "../../../core/deadline.ts";
import { limits } from "../../../protocol/limits.ts";
import { messageOf } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";
import { beginRemoval } from "./checkpoint-removal.ts";
import { type CheckpointRow, listRows } from "./checkpoint-rows.ts";
import { saveTree } from "./checkpoints.ts";

export class AutomaticCheckpoints {
  readonly #actor: SandboxActor;
  /** When the newest one was begun; undefined: not read yet. */
  #newestAt: number | undefined;
  /** After a failure, and while one is saved. */
  #notBefore = 0;

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  deadline(): Deadline | undefined {
    const { state } = this.#actor.facts.sandbox;
    if (state.name !== "running") return undefined;
    const everyMs = this.#everyMs();
    if (everyMs === undefined) return undefined;
    this.#newestAt ??= newestAutomatic(this.#actor);
    const dueAt = Math.max(state.since, this.#newestAt) + everyMs;
    return { at: Math.max(dueAt, this.#notBefore), why: "automatic checkpoint" };
  }

  isDue(): boolean {
    const deadline = this.deadline();
    return deadline !== undefined && this.#actor.now() >= deadline.at;
  }

  /** The tree is that of a sudden stop: commands in flight are frozen, not waited for. Never rejects. */
  async save(): Promise<void> {
    const actor = this.#actor;
    const began = actor.now();
    this.#notBefore = began + limits.snapshotTimeoutMs;
    try {
      await actor.freeze.untilOver();
      if (actor.runningAgent === undefined) return;
      await saveTree(actor, { name: null, usedBy: null, automatic: true });
      this.#newestAt = began;
      this.#notBefore = 0;
      pruneCheckpoints(actor);
    } catch (error) {
      this.#notBefore = actor.now() + limits.automaticCheckpointRetryMs;
      actor.host.log({ failed: "automatic checkpoint", message: messageOf(error) });
    }
    actor.armAlarm();
  }

  #everyMs(): number | undefined {
    const { checkpointEveryMs } = this.#actor.facts.sandbox.spec;
    if (typeof checkpointEveryMs === "number") return checkpointEveryMs;
    const { keepsFiles, savesFiles } = this.#actor.container;
    const isDefault = checkpointEveryMs === undefined && !keepsFiles && savesFiles;
    return isDefault ? limits.checkpointEveryMs : undefined;
  }
}

/** Call after one was made. With `keepCheckpoints` the oldest go, otherwise only automatic ones. */
export function pruneCheckpoints(actor: SandboxActor): void {
  const { keepCheckpoints } = actor.facts.sandbox.spec;
  const requested = listRows(actor.host).filter(
    ({ state, used_by }) => state === "ready" && used_by === null,
  );
  const excess =
    keepCheckpoints === undefined
      ? allButNewest(requested.filter(isAutomatic), limits.automaticCheckpointsMax)
      : allButNewest(requested, keepCheckpoints);
  for (const row of excess) {
    beginRemoval(actor, row);
    const { id, name } = row;
    const event = { type: "checkpoint", what: "removed", id } as const;
    actor.commit({}, [name === null ? event : { ...event, name }], "checkpoint removed");
  }
}

function allButNewest(rows: readonly CheckpointRow[], count: number): readonly CheckpointRow[] {
  return rows.slice(0, Math.max(0, rows.length - count));
}

function isAutomatic({ automatic }: CheckpointRow): boolean {
  return automatic === 1;
}

function newestAutomatic({ host }: SandboxActor): number {
  return listRows(host).findLast(isAutomatic)?.made_at ?? 0;
}
