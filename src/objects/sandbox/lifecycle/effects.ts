/** Performs the effect that a state requires. Its result names the start, so that a late one is dropped. */
import type { Effect } from "../../../core/sandbox/pending.ts";
import type { SandboxSpec, Start } from "../../../core/sandbox/record.ts";
import { asBerthError, type BerthError } from "../../../protocol/errors.ts";
import type { FailReason } from "../../../protocol/sandbox.ts";
import type { Started } from "../../../runtime/runtime.ts";
import { messageOf } from "../../shared/result.ts";
import { sleep } from "../../shared/timeout.ts";
import type { SandboxActor } from "../actor.ts";
import { removeAll } from "./checkpoint-removal.ts";
import { onStartedFrom, saveTree } from "./checkpoints.ts";

const firstPauseMs = 100;
const pauseMaxMs = 2000;
/** The platform takes labels of 64 bytes. */
const labelCharsMax = 64;

/** Never rejects: the alarm tries again. */
export async function performEffect(effect: Effect, actor: SandboxActor): Promise<void> {
  try {
    await actor.host.flush();
    if (effect.type === "start") await startContainer(actor, effect.start);
    else if (effect.type === "save") await saveForPause(actor, effect.incarnation);
    else if (effect.type === "stop") await stopContainer(actor, effect.incarnation);
    else if (effect.type === "destroy") await destroyContainer(actor);
    else await actor.forget();
  } catch (error) {
    actor.host.log({
      sandbox: actor.existing?.sandbox.spec.id,
      failed: effect.type,
      message: messageOf(error),
    });
  }
}

async function startContainer(actor: SandboxActor, attempt: Start): Promise<void> {
  let pauseMs = firstPauseMs;
  while (isWanted(actor, attempt)) {
    const outcome = await tryStart(actor, actor.facts.sandbox.spec, attempt);
    if ("started" in outcome) {
      const { serverRun } = actor.host;
      const agent = {
        ...outcome.started,
        secret: attempt.secret,
        ...(serverRun === undefined ? {} : { serverRun }),
      };
      if (!isWanted(actor, attempt)) return;
      if (!(await actor.link.speaksProtocol(agent))) {
        // An agent with an unknown protocol must not stay, and nothing has run in it.
        await actor.container.destroy("keep");
        const { startId } = attempt;
        actor.stepSandbox({ type: "start_failed", startId, reason: "agent_unsupported" });
        return;
      }
      if (!isWanted(actor, attempt)) return;
      await actor.metadataCopy.prepare(agent);
      if (!isWanted(actor, attempt)) return;
      actor.stepSandbox({ type: "started", startId: attempt.startId, life: agent });
      actor.link.onStarted(agent);
      if (attempt.snapshot !== undefined) onStartedFrom(actor, attempt.snapshot);
      return;
    }
    const { startId } = attempt;
    if ("failed" in outcome) {
      const { failed: reason, message } = outcome;
      actor.stepSandbox({ type: "start_failed", startId, reason, message });
      return;
    }
    if (isLastTry(actor, pauseMs)) {
      const { retry: reason, passes, message } = outcome;
      const temporary = passes ? ({ passes } as const) : {};
      actor.stepSandbox({ type: "start_failed", startId, reason, message, ...temporary });
      return;
    }
    await sleep(actor.host, pauseMs);
    pauseMs = Math.min(pauseMs * 2, pauseMaxMs);
    // An instance that was replaced in the meantime fails here, and starts nothing that its successor has ended.
    await actor.host.flush();
  }
}

type StartOutcome =
  | { started: Started }
  | { failed: FailReason; message: string }
  | { retry: FailReason; passes: boolean; message: string };

async function tryStart(
  actor: SandboxActor,
  spec: SandboxSpec,
  attempt: Start,
): Promise<StartOutcome> {
  try {
    const started = await actor.container.start({
      startId: attempt.startId,
      secret: attempt.secret,
      snapshot: attempt.snapshot,
      base: spec.base,
      env: spec.env,
      envVersion: spec.settingsVersion ?? 0,
      network: spec.network,
      labels: labelsOf(spec),
      ...(spec.sudo === undefined ? {} : { sudo: spec.sudo }),
      ...(spec.image === undefined ? {} : { image: spec.image, imageDigest: spec.imageDigest }),
      ...(spec.size === undefined ? {} : { size: spec.size }),
    });
    return { started };
  } catch (error) {
    const expected = asBerthError(error);
    if (expected === undefined) throw error;
    actor.host.log({ sandbox: spec.id, failed: "start", message: expected.message });
    // Failures that pass by themselves are retried for as long as a start may take.
    const passes = expected.facts.reason !== "never_up";
    const { code, message } = expected;
    if (code === "unavailable") return { retry: "start_timed_out", passes, message };
    if (code === "too_many") return { retry: "start_refused", passes, message };
    return { failed: failReasonOf(expected), message };
  }
}

/** How the operator of an installation finds the container of a tenant. */
function labelsOf({ tenant, scope }: SandboxSpec): Record<string, string> {
  const text = scope === undefined ? "" : `${scope.repo} ${scope.branch} ${scope.config}`.trim();
  const plain = text.replace(/[^ -~]/g, "?").slice(0, labelCharsMax);
  return { tenant: tenant.slice(0, labelCharsMax), ...(plain === "" ? {} : { scope: plain }) };
}

/** A pause that cannot save the files does not happen. */
async function saveForPause(actor: SandboxActor, incarnation: string): Promise<void> {
  try {
    const { handle } = await saveTree(actor, { name: null, usedBy: "pause" });
    actor.stepSandbox({ type: "saved", incarnation, snapshot: handle });
  } catch (error) {
    actor.stepSandbox({ type: "not_saved", incarnation });
    throw error;
  }
}

/** Ends the container. Its files stay, were saved before, or are not wanted. */
async function stopContainer(actor: SandboxActor, incarnation: string): Promise<void> {
  await actor.container.destroy("keep");
  actor.stepSandbox({ type: "paused", incarnation });
}

async function destroyContainer(actor: SandboxActor): Promise<void> {
  const starts = actor.reconciler.runningStarts();
  await actor.container.destroy("remove");
  if (starts.length > 0) {
    // A start in progress may have created a container after the first call.
    await Promise.all(starts);
    await actor.container.destroy("remove");
  }
  await removeAll(actor);
  actor.stepSandbox({ type: "destroyed" });
}

function failReasonOf({ code, facts }: BerthError): FailReason {
  if (facts.field === "image") return "image_missing";
  if (code === "disk_full") return "disk_full";
  return facts.reason === "snapshot_missing" ? "snapshot_missing" : "start_refused";
}

/** Whether the deadline comes before the next try. Failing earlier gives a better reason than the deadline can. */
function isLastTry(actor: SandboxActor, pauseMs: number): boolean {
  const state = actor.existing?.sandbox.state;
  return state?.name === "starting" && actor.now() + pauseMs >= state.until;
}

function isWanted(actor: SandboxActor, attempt: Start): boolean {
  const state = actor.existing?.sandbox.state;
  return state?.name === "starting" && state.start.startId === attempt.startId;
}
