/**
 * Owns what one agent is about: the sandbox, as the sum of its parts, and the end of all of it.
 * Does not own the parts, nor when they end (modes/).
 */
import { stat } from "node:fs/promises";
import { limits } from "../../src/protocol/limits.ts";
import { Activity } from "./activity.ts";
import { Commands } from "./exec/commands.ts";
import type { Place } from "./exec/sandbox-env.ts";
import { Endings } from "./exit-events.ts";
import type { MetadataCopy } from "./metadata-copy.ts";
import { Later } from "./server/deferred.ts";
import { GatedWork } from "./server/gated-work.ts";
import type { Part } from "./server/module.ts";
import { partsOf } from "./server/modules.ts";
import { Kept } from "./server/stored-answers.ts";
import { Guests } from "./server/token-sockets.ts";
import { endLimitMs, type Forest } from "./supervision/process-tree.ts";

/** The grace, and twice the kernel's time: a tender has one, and the agent after it. */
const endAllLimitMs = limits.execKillGraceMs + 2 * endLimitMs;

/** What parts are made of. */
export type Ground = {
  place: Place;
  forest: Forest;
  gated: GatedWork;
  activity: Activity;
  guests: Guests;
  endings: Endings;
  kept: Kept;
  metadata: MetadataCopy;
};

export class Sandbox implements Ground {
  readonly activity = new Activity();
  readonly guests = new Guests();
  readonly endings = new Endings();
  readonly kept = new Kept();
  readonly later = new Later();
  readonly gated = new GatedWork(this.activity);
  readonly place: Place;
  readonly forest: Forest;
  readonly metadata: MetadataCopy;
  readonly commands: Commands;
  /** By the path that each answers below. */
  readonly parts: ReadonlyMap<string, Part>;

  constructor(place: Place, forest: Forest, metadata: MetadataCopy) {
    this.place = place;
    this.forest = forest;
    this.metadata = metadata;
    this.commands = new Commands(place, forest, this.gated);
    this.parts = partsOf(this);
    // The runtime's threads for files begin with the first task: later, commands may have left it no process.
    stat("/").catch(() => {});
  }

  async endAll(): Promise<void> {
    const ends = [...this.parts.values()].map((part) => part.endAll());
    await Promise.all([this.gated.endAll(endAllLimitMs), ...ends]);
    await this.forest.close();
  }
}
