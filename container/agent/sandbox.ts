/**
 * Owns what one agent is about: the sandbox, as the sum of its parts, and the end of all of it.
 * Does not own the parts, nor when they end (modes/).
 */
import { stat } from "node:fs/promises";
import { limits } from "../../src/protocol/limits.ts";
import { Activity } from "./activity.ts";
import { Commands } from "./commands.ts";
import { Endings } from "./endings.ts";
import { GatedWork } from "./gated-work.ts";
import { Guests } from "./guests.ts";
import { Kept } from "./kept.ts";
import { Later } from "./later.ts";
import type { MetadataCopy } from "./metadata-copy.ts";
import type { Part } from "./part.ts";
import { partsOf } from "./parts.ts";
import type { Place } from "./place.ts";
import { endLimitMs, type Forest } from "./tree/tree.ts";

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
