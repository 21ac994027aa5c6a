/**
 * Owns doing what a state wants done. Each effect waits for its rows to be on disk, looks at the state again,
 * acts, and comes back with an event that names its start: a late one is dropped there.
 */

import type { Effect } from "../../../core/sandbox/pending.ts";
import type { SandboxSpec, Start } from "../../../core/sandbox/record.ts";
import { asBerthError, type BerthError } from "../../../protocol/errors.ts";
import type { FailReason } from "../../../protocol/sandbox.ts";
import type { Started } from "../../../runtime/runtime.ts";
import { pause } from "../../shared/timeout.ts";
import type { SandboxActor } from "../actor.ts";
import { removeAll } from "./checkpoint-removal.ts";
import { save, startedFrom } from "./checkpoints.ts";

const firstPauseMs = 100;
const pauseMaxMs = 2000;

/** Never rejects: what fails is tried again by the alarm. */
export async function perform(effect: Effect, actor: SandboxActor): Promise<void> {
  try {
    await actor.host.durable();
    if (effect.type === "start") await start(actor, effect.start);
    else if (effect.type === "save") await saveForPause(actor, effect.incarnation);
    else if (effect.type === "stop") await stop(actor, effect.incarnation);
    else if (effect.type === "destroy") await destroy(actor);
    else await actor.forget();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    actor.host.log({ sandbox: actor.known?.sandbox.spec.id, failed: effect.type, message });
  }
}

async function start(actor: SandboxActor, attempt: Start): Promise<void> {
  let pauseMs = firstPauseMs;
  while (wanted(actor, attempt)) {
    const outcome = await tryStart(actor, actor.facts.sandbox.spec, attempt);
    if ("started" in outcome) {
      const life = { ...outcome.started, secret: attempt.secret };
      if (!wanted(actor, attempt)) return;
      if (!(await actor.link.speaks(life))) {
        // What nobody can speak to must not run on, and nothing has run in it.
        await actor.container.destroy("keep");
        const { startId } = attempt;
        actor.sandbox({ type: "start_failed", startId, reason: "agent_unsupported" });
        return;
      }
      if (!wanted(actor, attempt)) return;
      await actor.metadataCopy.prepare(life);
      if (!wanted(actor, attempt)) return;
      actor.sandbox({ type: "started", startId: attempt.startId, life });
      actor.link.started(life);
      if (attempt.snapshot !== undefined) startedFrom(actor, attempt.snapshot);
      return;
    }
    const { startId } = attempt;
    if ("failed" in outcome) {
      actor.sandbox({ type: "start_failed", startId, reason: outcome.failed });
      return;
    }
    if (isLastTry(actor, pauseMs)) {
      const { again: reason, passes } = outcome;
      actor.sandbox({ type: "start_failed", startId, reason, ...(passes ? { passes } : {}) });
      return;
    }
    await pause(actor.host, pauseMs);
    pauseMs = Math.min(pauseMs * 2, pauseMaxMs);
    // An instance that was replaced meanwhile finds out here, and starts nothing that its successor has ended.
    await actor.host.durable();
  }
}

async function tryStart(
  actor: SandboxActor,
  spec: SandboxSpec,
  attempt: Start,
): Promise<{ started: Started } | { failed: FailReason } | { again: FailReason; passes: boolean }> {
  try {
    const started = await actor.container.start({
      startId: attempt.startId,
      secret: attempt.secret,
      snapshot: attempt.snapshot,
      base: spec.base,
      env: spec.env,
      network: spec.network,
      ...(spec.image === undefined ? {} : { image: spec.image }),
      ...(spec.size === undefined ? {} : { size: spec.size }),
    });
    return { started };
  } catch (error) {
    const known = asBerthError(error);
    if (known === undefined) throw error;
    actor.host.log({ sandbox: spec.id, failed: "start", message: known.message });
    // What passes by itself is tried again, as long as a start may take.
    const passes = known.facts.reason !== "never_up";
    if (known.code === "unavailable") return { again: "start_timed_out", passes };
    if (known.code === "too_many") return { again: "start_refused", passes };
    return { failed: reasonOf(known) };
  }
}

/** A pause that cannot save what would be lost does not happen. */
async function saveForPause(actor: SandboxActor, incarnation: string): Promise<void> {
  try {
    const { handle } = await save(actor, { name: null, usedBy: "pause" });
    actor.sandbox({ type: "saved", incarnation, snapshot: handle });
  } catch (error) {
    actor.sandbox({ type: "not_saved", incarnation });
    throw error;
  }
}

/** Ends the container; its files are kept, or saved, or not wanted. */
async function stop(actor: SandboxActor, incarnation: string): Promise<void> {
  await actor.container.destroy("keep");
  actor.sandbox({ type: "paused", incarnation });
}

async function destroy(actor: SandboxActor): Promise<void> {
  const starts = actor.pursuit.startsUnderWay();
  await actor.container.destroy("remove");
  if (starts.length > 0) {
    // A start that was under way may have brought a container up after the first call.
    await Promise.all(starts);
    await actor.container.destroy("remove");
  }
  await removeAll(actor);
  actor.sandbox({ type: "destroyed" });
}

function reasonOf({ code, facts }: BerthError): FailReason {
  if (facts.field === "image") return "image_missing";
  if (code === "disk_full") return "disk_full";
  return facts.reason === "snapshot_missing" ? "snapshot_missing" : "start_refused";
}

/** Before its deadline: that knows nothing of why it did not come up. */
function isLastTry(actor: SandboxActor, pauseMs: number): boolean {
  const state = actor.known?.sandbox.state;
  return state?.name === "starting" && actor.now() + pauseMs >= state.until;
}

function wanted(actor: SandboxActor, attempt: Start): boolean {
  const state = actor.known?.sandbox.state;
  return state?.name === "starting" && state.start.startId === attempt.startId;
}
