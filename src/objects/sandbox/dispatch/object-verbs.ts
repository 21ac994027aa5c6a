/** The verbs that the Sandbox object serves itself: one function each, by the name of their row. */
import type { MetadataPatch } from "../../../protocol/metadata.ts";
import type { PortCall } from "../../../protocol/port.ts";
import type { VerbRows } from "../../../protocol/verbs/rows.ts";
import type { SandboxActor } from "../actor.ts";
import * as events from "../events.ts";
import * as leases from "../lease/leases.ts";
import * as checkpoints from "../lifecycle/checkpoints.ts";
import * as lifecycle from "../lifecycle/lifecycle.ts";
import * as metadata from "../metadata.ts";
import * as ports from "../ports.ts";
import * as settings from "../settings.ts";
import { openerOf } from "./opener.ts";
import * as rights from "./rights.ts";
import type {
  ArgsOf,
  CallableVerb,
  ContentOf,
  ObjectVerb,
  VerbArgs,
  VerbCaller,
} from "./verb-call.ts";

export type ObjectContext = { actor: SandboxActor; caller: VerbCaller };

type ObjectVerbs = {
  [Name in ObjectVerb]: (
    context: ObjectContext,
    args: ArgsOf<VerbRows[Name]>,
  ) => ContentOf<Name> | Promise<ContentOf<Name>>;
};

export const objectVerbs = {
  getSandbox: ({ actor }) => lifecycle.get(actor),
  startSandbox: listed(({ actor }) => lifecycle.start(actor)),
  pauseSandbox: listed(({ actor, caller }, { gated, query: { force, discardFiles } }) =>
    lifecycle.pause(actor, gated, revoker(caller, force), discardFiles),
  ),
  destroySandbox: listed(({ actor, caller }, { gated, query: { force } }) =>
    lifecycle.destroy(actor, gated, revoker(caller, force)),
  ),
  cancelCall: ({ actor }, { target }) => actor.cancellable.cancel(target),
  touchSandbox: ({ actor }) => lifecycle.touch(actor),
  setEnd: listed(({ actor }, { body }) => lifecycle.setEnd(actor, body)),

  makeCheckpoint: ({ actor }, { body, gated }) => checkpoints.make(actor, body, gated),
  listCheckpoints: ({ actor }) => checkpoints.list(actor),
  getCheckpoint: ({ actor }, { target }) => checkpoints.get(actor, target),
  removeCheckpoint: ({ actor }, { target }) => checkpoints.remove(actor, target),
  restoreCheckpoint: listed(({ actor }, { target, gated }) =>
    checkpoints.restore(actor, target, gated),
  ),
  listPorts: ({ actor }) => ports.list(actor),
  closePort({ actor }, { target }) {
    ports.close(actor, target);
    return undefined;
  },

  acquireLease: ({ actor, caller }, { body }) =>
    leases.acquire(actor, body, () => actor.revocation.refuse(openerOf(caller))),
  getLease: ({ actor }) => leases.get(actor),
  getMetadata: ({ actor }) => metadata.get(actor),
  getSettings: ({ actor }) => settings.get(actor),
  patchSettings: listed(({ actor }, { body }) => settings.patch(actor, body)),
  listEvents: ({ actor }, { query }) => events.page(actor, query),
  revokeTokens({ actor }) {
    rights.revokeTokens(actor);
    return undefined;
  },
  createTicket({ actor, caller }) {
    actor.refuseIfDestroyed();
    return rights.makeConnectTicket(actor, caller);
  },

  // The Worker completes these (src/worker/special): their arguments or results differ from their rows.
  openPort: ({ actor }: ObjectContext, { call }: { call: PortCall }) => ports.open(actor, call),
  renewLease: (
    { actor }: ObjectContext,
    { token, ttlMs }: { token: string; ttlMs: number | undefined },
  ) => leases.renew(actor, token, ttlMs),
  releaseLease: ({ actor }: ObjectContext, { token, force }: { token: string; force: boolean }) =>
    leases.release(actor, token, force),
  breakLease: ({ actor, caller }: ObjectContext, { reason }: { reason: string }) =>
    leases.breakLease(actor, caller.tenant, reason),
  patchMetadata: listed(
    ({ actor }, { change, ifMatch }: { change: MetadataPatch; ifMatch: number | undefined }) =>
      metadata.patch(actor, change, ifMatch),
  ),
  replaceMetadata: listed(({ actor }, { to, ifMatch }: { to: MetadataPatch; ifMatch: number }) =>
    metadata.replace(actor, to, ifMatch),
  ),
  followEvents: ({ actor, caller }: ObjectContext, { after }: { after: number }) =>
    actor.eventStreams.follow(after, () => actor.revocation.refuse(openerOf(caller))),
  tokenGeneration({ actor }: ObjectContext) {
    actor.refuseIfDestroyed();
    return actor.facts.tokenGeneration;
  },
  waitUntilStarted: listed(({ actor }, { waitMs }: { waitMs: number }) =>
    lifecycle.waitUntilStarted(actor, waitMs),
  ),
  describeFork: ({ actor }: ObjectContext, { checkpoint }: { checkpoint: string }) =>
    checkpoints.describeFork(actor, checkpoint),
} satisfies ObjectVerbs & Record<string, unknown>;

type AnyObjectVerb = (context: ObjectContext, args: VerbArgs) => unknown;

/** Undefined: the agent serves this verb. */
export function objectVerb(name: CallableVerb): AnyObjectVerb | undefined {
  return (objectVerbs as Partial<Record<CallableVerb, unknown>>)[name] as AnyObjectVerb | undefined;
}

/** For verbs that change what lists show: they return when the lists show it, or say that they do not yet. */
function listed<Args, View extends { listed?: false | undefined }>(
  serve: (context: ObjectContext, args: Args) => View | Promise<View>,
): (context: ObjectContext, args: Args) => Promise<View> {
  return async (context, args) => {
    const view = await serve(context, args);
    return (await context.actor.outbox.waitUntilListed()) ? view : { ...view, listed: false };
  };
}

/** The event of a lease that was revoked by force names the tenant. */
function revoker(caller: VerbCaller, force: boolean): { by: string } | undefined {
  return force ? { by: caller.tenant } : undefined;
}
