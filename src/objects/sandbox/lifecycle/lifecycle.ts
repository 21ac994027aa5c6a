/** The calls on a sandbox as a whole. Concurrent calls with the same aim join. */

import { newLease } from "../../../core/lease/lease.ts";
import { checkLease } from "../../../core/lease/refusals.ts";
import { notRunningError } from "../../../core/sandbox/admit.ts";
import type { SandboxSpec } from "../../../core/sandbox/record.ts";
import { createRecord, isEnding } from "../../../core/sandbox/step.ts";
import { viewSandbox } from "../../../core/sandbox/view.ts";
import { BerthError } from "../../../protocol/errors.ts";
import { limits } from "../../../protocol/limits.ts";
import type { MetadataPatch } from "../../../protocol/metadata.ts";
import {
  type EndCall,
  hostListError,
  type Network,
  type Sandbox,
} from "../../../protocol/sandbox.ts";
import type { SandboxActor } from "../actor.ts";
import { beginExclusive, type GatedCaller, newStart } from "../lease/gated-admission.ts";
import { createMetadata } from "../metadata.ts";
import { listRows } from "./checkpoint-rows.ts";

/** The caller's authority to end a sandbox: the token of its lease, or force. */
export type LeaseClaim = { token?: string | undefined; force?: { by: string } | undefined };

/** The sandbox that replaces this one, as far as this one checks it. */
export type Successor = { network: Network };

export type NewSandbox = { spec: SandboxSpec; metadata: MetadataPatch; start: boolean };

/** Creates the sandbox; a repeated call finds it created. */
export function make(actor: SandboxActor, call: NewSandbox): void {
  if (actor.existing !== undefined) return;
  refuseHosts(actor, call.spec);
  refusePauseAtEnd(actor, call.spec);
  const metadata = createMetadata(call.metadata);
  const start = call.start ? newStart(actor) : undefined;
  actor.create({
    sandbox: createRecord(call.spec, start, actor.now()),
    lease: newLease,
    metadata,
    tokenGeneration: 0,
    revoking: null,
    participant: null,
  });
}

/** Probes the agent first, which may have died unnoticed. Starts nothing and does not count as use. */
export async function get(actor: SandboxActor): Promise<Sandbox> {
  await actor.link.probeBriefly(limits.probeWaitMs);
  return currentView(actor);
}

export async function waitUntilStarted(actor: SandboxActor, waitMs: number): Promise<Sandbox> {
  await actor.waitUntil(({ state }) => state.name !== "starting", waitMs);
  return currentView(actor);
}

/** Ignores the lease: the plan decided that this sandbox ends. */
export async function endForPlan(actor: SandboxActor, reason: string): Promise<void> {
  if (!isEnding(actor.facts.sandbox.state)) actor.stepSandbox({ type: "destroy", reason });
  await actor.waitUntil(({ state }) => state.name === "destroyed", limits.waitMaxMs);
}

/** Refuses allowed hosts that the installation cannot enforce, before anything is created. */
function refuseHosts(
  { host }: SandboxActor,
  { id, network }: Pick<SandboxSpec, "id" | "network">,
): void {
  const refused = hostListError(network);
  if (refused !== undefined && !host.openRuntime(id, network).filtersHosts) throw refused;
}

/** Where files end with the container, a run cannot end with a pause. */
function refusePauseAtEnd({ host }: SandboxActor, { id, network, onEnd }: SandboxSpec): void {
  if (onEnd !== "pause") return;
  const { keepsFiles, savesFiles } = host.openRuntime(id, network);
  if (keepsFiles || savesFiles) return;
  throw new BerthError("unsupported", "onEnd: the files would be lost with the container.", {
    hint: "This installation has no snapshots. Leave `onEnd` out, or set it to `destroy`.",
    facts: { field: "onEnd" },
  });
}

/** Moves the end of the run, which each start sets again. */
export function setEnd(actor: SandboxActor, { afterMs, onlyLater }: EndCall): Sandbox {
  actor.refuseIfDestroyed();
  const { state } = actor.facts.sandbox;
  if (state.name !== "running") throw notRunningError(state.name);
  actor.stepSandbox({ type: "set_end", at: actor.now() + afterMs, onlyLater });
  return currentView(actor);
}

export async function start(actor: SandboxActor): Promise<Sandbox> {
  // Probes the agent first, which may have died unnoticed: a caller of start gets a running sandbox.
  await actor.link.ensureAlive();
  actor.refuseIfDestroyed();
  actor.stepSandbox({ type: "start", start: newStart(actor) });
  await actor.waitUntil(
    ({ state }) => state.name !== "starting" && state.name !== "pausing",
    limits.waitMaxMs,
  );
  return currentView(actor);
}

/** Ends processes and keeps files. With `force` it waits for no lease. */
export async function pause(
  actor: SandboxActor,
  caller: GatedCaller,
  force: { by: string } | undefined,
  discardFiles: boolean,
): Promise<Sandbox> {
  actor.refuseIfDestroyed();
  const { keepsFiles, savesFiles } = actor.container;
  if (!keepsFiles && !savesFiles && !discardFiles) {
    throw new BerthError("unsupported", "The files would be lost with the container.", {
      hint: "This installation has no snapshots. Pause with `?discardFiles=true`, or leave the sandbox running.",
    });
  }
  // Exits are reported before the agent ends.
  await actor.workMonitor.probeIdleMs();
  const end = await beginExclusive(actor, caller, { what: "pause", counted: false, force });
  try {
    await actor.waitUntil(({ state }) => state.name !== "starting", limits.waitMaxMs);
    const { name } = actor.facts.sandbox.state;
    if (name === "failed") throw notRunningError(name);
    if (name === "starting") {
      throw new BerthError("unavailable", "The sandbox is still starting.", {
        hint: "Try again in a moment.",
        facts: { state: name },
      });
    }
    actor.stepSandbox({ type: "pause", reason: "requested", save: !keepsFiles && !discardFiles });
    await actor.waitUntil(({ state }) => state.name !== "pausing", limits.waitMaxMs);
  } finally {
    end();
  }
  return currentView(actor);
}

/** The files are saved and the container ends; the next call starts it elsewhere. What runs in it ends with its host. */
export function saveBeforeHostCloses(
  actor: SandboxActor,
  { incarnation, secret }: { incarnation: string; secret: string },
): boolean {
  const { runningAgent, container } = actor;
  if (runningAgent?.incarnation !== incarnation || runningAgent.secret !== secret) return false;
  if (!container.savesFiles || container.keepsFiles) return false;
  actor.stepSandbox({ type: "pause", reason: "host_closing", save: true });
  return true;
}

export async function destroy(
  actor: SandboxActor,
  caller: GatedCaller,
  force: { by: string } | undefined,
): Promise<Sandbox> {
  await actor.link.ensureGreeted();
  const notes = notesOnSavedTrees(actor);
  const refused = endUnlessHeld(actor, "requested", { token: caller.token, force });
  if (refused !== undefined) throw refused;
  await actor.waitUntil(({ state }) => state.name === "destroyed", limits.waitMaxMs);
  return { ...currentView(actor), ...(notes.length > 0 ? { notes } : {}) };
}

/** The platform has no call that deletes a saved tree: it ends by itself, and the caller has to know when. */
function notesOnSavedTrees(actor: SandboxActor): string[] {
  if (actor.container.keepsFiles) return [];
  const ends = listRows(actor.host).map(({ expires_at: expiresAt }) => expiresAt ?? 0);
  if (ends.length === 0) return [];
  const until = new Date(Math.max(...ends)).toISOString();
  return [
    `${ends.length} saved trees cannot be deleted earlier: the platform keeps them until ${until}.`,
  ];
}

/** Ends this sandbox in favour of its successor. If it throws, this sandbox is unchanged. */
export async function giveWay(
  actor: SandboxActor,
  to: Successor,
  claim: LeaseClaim,
): Promise<void> {
  await actor.link.ensureGreeted();
  const { state, spec } = actor.facts.sandbox;
  // This sandbox does not end for a successor that cannot be created here.
  if (!isEnding(state)) refuseHosts(actor, { id: spec.id, network: to.network });
  const refused = endUnlessHeld(actor, "replaced", claim);
  if (refused === undefined) return;
  const { code, message, facts } = refused;
  throw new BerthError(code, message, {
    hint: "Nothing was replaced. Retry when the lease is free, with its token (`Berth-Lease`), or with `?force=true`.",
    facts: { ...facts, sandbox: spec.id },
  });
}

/** Checks the lease and ends the sandbox in one step, so that no other caller gets the lease in between. */
function endUnlessHeld(
  actor: SandboxActor,
  reason: string,
  claim: LeaseClaim,
): BerthError | undefined {
  if (isEnding(actor.facts.sandbox.state)) return undefined;
  actor.stepLease({ type: "tick" });
  const refused = checkLease(actor.facts.lease, claim.token);
  if (refused !== undefined && claim.force === undefined) return refused;
  actor.stepSandbox({ type: "destroy", reason }, claim.force?.by);
  return undefined;
}

export function touch(actor: SandboxActor): Sandbox {
  actor.refuseIfDestroyed();
  const { state } = actor.facts.sandbox;
  if (state.name === "running") actor.stepSandbox({ type: "active", at: actor.now() });
  return currentView(actor);
}

export function currentView(actor: SandboxActor): Sandbox {
  const { sandbox, metadata, lease, participant } = actor.facts;
  return viewSandbox(sandbox, metadata, lease, participant?.plan);
}
