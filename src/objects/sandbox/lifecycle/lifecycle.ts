/**
 * Owns the calls on a sandbox as a whole: create, start, pause, touch, destroy.
 * Does not own the moves (core/sandbox); calls with the same aim join.
 */

import { refuseAtGate } from "../../../core/lease/check.ts";
import { newLease } from "../../../core/lease/lease.ts";
import { noMetadata, patchMetadata } from "../../../core/metadata/patch.ts";
import { destroyedError, notRunning } from "../../../core/sandbox/admit.ts";
import type { SandboxSpec } from "../../../core/sandbox/record.ts";
import { createRecord, isOver } from "../../../core/sandbox/step.ts";
import { view } from "../../../core/sandbox/view.ts";
import { BerthError } from "../../../protocol/errors.ts";
import { hostsRefused } from "../../../protocol/fields/hosts.ts";
import { limits } from "../../../protocol/limits.ts";
import type { MetadataPatch } from "../../../protocol/metadata.ts";
import type { Network, Sandbox } from "../../../protocol/sandbox.ts";
import type { SandboxActor } from "../actor.ts";
import { alone } from "../lease/exclusive.ts";
import { type GatedCaller, newStart } from "../lease/gated.ts";

/** How a call that ends a sandbox passes its lease: it is the caller's own, or is taken away. */
export type Gate = { token?: string | undefined; force?: { by: string } | undefined };

/** What takes the place of a sandbox, as far as that one looks at it. */
export type Successor = { network: Network };

export type NewSandbox = {
  spec: SandboxSpec;
  metadata: MetadataPatch;
  start: boolean;
};

/** Made once; who makes it again finds it made. */
export function make(actor: SandboxActor, call: NewSandbox): void {
  if (actor.known !== undefined) return;
  refuseHosts(actor, call.spec);
  const metadata = patchMetadata(noMetadata, call.metadata, undefined);
  if ("refuse" in metadata) throw metadata.refuse;
  const start = call.start ? newStart(actor) : undefined;
  actor.create({
    sandbox: createRecord(call.spec, start, actor.now()),
    lease: newLease,
    metadata: metadata.next,
    tokenGeneration: 0,
    revoking: null,
    seat: null,
  });
}

/** One that is thought to run may have died unheard. A look wakes nothing and is no work. */
export async function look(actor: SandboxActor): Promise<Sandbox> {
  await actor.link.seen(limits.lookWaitMs);
  return told(actor);
}

export async function settled(actor: SandboxActor, waitMs: number): Promise<Sandbox> {
  await actor.until(({ state }) => state.name !== "starting", waitMs);
  return told(actor);
}

/** Whoever holds the lease: its plan was told to. */
export async function end(actor: SandboxActor, reason: string): Promise<void> {
  if (!isOver(actor.facts.sandbox.state)) actor.sandbox({ type: "destroy", reason });
  await actor.until(({ state }) => state.name === "destroyed", limits.waitMaxMs);
}

/** What cannot be held to is refused before anything is made. */
function refuseHosts(
  { host }: SandboxActor,
  { id, network }: Pick<SandboxSpec, "id" | "network">,
): void {
  const refused = hostsRefused(network);
  if (refused !== undefined && !host.openContainer(id, network).filtersHosts) throw refused;
}

export async function start(actor: SandboxActor): Promise<Sandbox> {
  // One that is thought to run may have been lost unheard: who asks for a start gets one.
  await actor.link.alive();
  refuseWhenOver(actor);
  actor.sandbox({ type: "start", start: newStart(actor) });
  await actor.until(
    ({ state }) => state.name !== "starting" && state.name !== "pausing",
    limits.waitMaxMs,
  );
  return told(actor);
}

/** Processes end, files stay. With `force` it waits for nobody. */
export async function pause(
  actor: SandboxActor,
  caller: GatedCaller,
  force: { by: string } | undefined,
  discardFiles: boolean,
): Promise<Sandbox> {
  refuseWhenOver(actor);
  const { keepsFiles, savesFiles } = actor.container;
  if (!keepsFiles && !savesFiles && !discardFiles) {
    throw new BerthError("unsupported", "Here the files would be lost with the container.", {
      hint: "This installation has no snapshots: pause with ?discardFiles=true, or let it run.",
    });
  }
  // What ended before is told before its agent is gone.
  await actor.work.idleMs();
  const done = await alone(actor, caller, { what: "pause", counted: false, force });
  try {
    await actor.until(({ state }) => state.name !== "starting", limits.waitMaxMs);
    const { name } = actor.facts.sandbox.state;
    if (name === "failed") throw notRunning(name);
    if (name === "starting") {
      throw new BerthError("unavailable", "The sandbox is still starting.", {
        hint: "Try again in a moment.",
        facts: { state: name },
      });
    }
    actor.sandbox({ type: "pause", reason: "requested", save: !keepsFiles && !discardFiles });
    await actor.until(({ state }) => state.name !== "pausing", limits.waitMaxMs);
  } finally {
    done();
  }
  return told(actor);
}

export async function destroy(
  actor: SandboxActor,
  caller: GatedCaller,
  force: { by: string } | undefined,
): Promise<Sandbox> {
  await actor.link.known();
  const refused = endUnlessHeld(actor, "requested", { token: caller.token, force });
  if (refused !== undefined) throw refused;
  await actor.until(({ state }) => state.name === "destroyed", limits.waitMaxMs);
  return told(actor);
}

/** For one that takes its place: on its way out when this answers, or as it was. */
export async function giveWay(actor: SandboxActor, to: Successor, gate: Gate): Promise<void> {
  await actor.link.known();
  const { state, spec } = actor.facts.sandbox;
  // Nobody is ended for one that cannot be made here.
  if (!isOver(state)) refuseHosts(actor, { id: spec.id, network: to.network });
  const refused = endUnlessHeld(actor, "replaced", gate);
  if (refused === undefined) return;
  const { code, message, facts } = refused;
  throw new BerthError(code, message, {
    hint: "Nothing was replaced. Ask again when it is let go, with its token (Berth-Lease), or with ?force=true.",
    facts: { ...facts, sandbox: spec.id },
  });
}

/** Looked at and ended in one step: nobody gets its lease in between. */
function endUnlessHeld(actor: SandboxActor, reason: string, gate: Gate): BerthError | undefined {
  if (isOver(actor.facts.sandbox.state)) return undefined;
  actor.lease({ type: "tick" });
  const refused = refuseAtGate(actor.facts.lease, gate.token);
  if (refused !== undefined && gate.force === undefined) return refused;
  actor.sandbox({ type: "destroy", reason }, gate.force?.by);
  return undefined;
}

export function touch(actor: SandboxActor): Sandbox {
  refuseWhenOver(actor);
  const { state } = actor.facts.sandbox;
  if (state.name === "running") actor.sandbox({ type: "active", at: actor.now() });
  return told(actor);
}

export function told(actor: SandboxActor): Sandbox {
  const { sandbox, metadata, lease, seat } = actor.facts;
  return view(sandbox, metadata, lease, seat?.plan);
}

export function refuseWhenOver(actor: SandboxActor): void {
  const { state } = actor.facts.sandbox;
  if (isOver(state) && "reason" in state) throw destroyedError(state.reason);
}
