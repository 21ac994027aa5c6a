/** The calls on the metadata: one request makes one commit, and the copy inside the sandbox follows. */
import {
  emptyMetadata,
  type MetadataChange,
  patchMetadata,
  replaceMetadata,
  type VersionedMetadata,
} from "../../core/metadata/patch.ts";
import type { MetadataAnswer, MetadataPatch } from "../../protocol/metadata.ts";
import type { SandboxActor } from "./actor.ts";

export function get(actor: SandboxActor): MetadataAnswer {
  const { map, version } = actor.facts.metadata;
  return { metadata: { ...map }, version };
}

export function patch(
  actor: SandboxActor,
  change: MetadataPatch,
  ifMatch: number | undefined,
): MetadataAnswer {
  actor.refuseIfDestroyed();
  return apply(actor, patchMetadata(actor.facts.metadata, change, ifMatch));
}

export function replace(actor: SandboxActor, to: MetadataPatch, ifMatch: number): MetadataAnswer {
  actor.refuseIfDestroyed();
  return apply(actor, replaceMetadata(actor.facts.metadata, to, ifMatch));
}

/** The metadata of a new sandbox. */
export function createMetadata(given: MetadataPatch): VersionedMetadata {
  const metadata = patchMetadata(emptyMetadata, given, undefined);
  if ("refuse" in metadata) throw metadata.refuse;
  return metadata.next;
}

function apply(actor: SandboxActor, changed: MetadataChange): MetadataAnswer {
  if ("refuse" in changed) throw changed.refuse;
  const { next, set, removed } = changed;
  if (next !== actor.facts.metadata) {
    const event = { type: "metadata" as const, version: next.version, set, removed };
    actor.commit({ metadata: next }, [event], "metadata");
    actor.metadataCopy.update();
  }
  return get(actor);
}
