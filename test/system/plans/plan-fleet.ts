/**
 * Makes a plan of real sandboxes for one test, with its members in the order in which runs hold them, reads their trees,
 * and checks that nothing is left at the end.
 */
import { expect } from "vitest";
import type { PlanApi } from "../../../src/protocol/api.ts";
import type { Commit } from "../../../src/protocol/plan.ts";
import { parallel } from "../../bench/measure.ts";
import { connectCalls } from "../../berth-calls.ts";
import { until } from "../../until.ts";
import { engineEntries, trashIsEmpty, treeSnapshot } from "../files/workspace.ts";
import type { Server } from "../server.ts";

export type FleetMember = { key: string; id: string };

export class Fleet {
  server: Server;
  readonly name: string;
  members: FleetMember[] = [];

  static async of(server: Server, name: string, count: number): Promise<Fleet> {
    const fleet = new Fleet(server, name);
    await fleet.plan.put();
    const keys = Array.from({ length: count }, (_, n) => `m${n}`);
    const made = await inParallel(keys, 8, async (key) => {
      const { sandbox } = await fleet.plan.putMember(key, { create: {} });
      return { key, id: sandbox };
    });
    fleet.members = made.sort((a, b) => (a.id < b.id ? -1 : 1));
    return fleet;
  }

  private constructor(server: Server, name: string) {
    this.server = server;
    this.name = name;
  }

  get plan(): PlanApi {
    return connectCalls(this.server).plan(this.name);
  }

  get ids(): string[] {
    return this.members.map(({ id }) => id);
  }

  /** The sandbox of a member, by its place in the order of runs. */
  id(n: number): string {
    const member = this.members[n];
    if (member === undefined) throw new Error(`the plan has no member ${n}`);
    return member.id;
  }

  /** Every tree, to the byte. */
  seen(): Promise<string[]> {
    return inParallel(this.ids, 4, (id) => treeSnapshot(this.server, id));
  }

  async committed(call = {}): Promise<Commit> {
    const done = await this.plan.commit(call);
    expect(done.outcome, JSON.stringify(done)).toBe("committed");
    return done;
  }

  /** Nothing runs, nobody is held, and each saved tree is somebody's last commit. */
  async expectAtRest(): Promise<void> {
    const { running, members } = await this.plan.get();
    expect(running).toBeUndefined();
    expect(members.map(({ sandbox }) => sandbox).sort()).toEqual(this.ids);
    for (const id of this.ids) {
      const lease = await this.server.call("GET", `/v1/sandboxes/${id}/lease`);
      expect(lease.body).toMatchObject({ state: "free", waiterCount: 0 });
    }
    const ofRuns = members.filter(({ committed }) => committed !== null).length;
    await until(
      "saved trees are those of the last commits",
      () => engineEntries(this.server, "snapshots").length === ofRuns,
    );
  }

  /** With all of its sandboxes; of a server that has no others. */
  async end(): Promise<void> {
    await this.plan.remove({ sandboxes: "destroy" });
    await until("its trees are gone", () =>
      engineEntries(this.server, "trees").every((id) => !this.ids.includes(id)),
    );
    await trashIsEmpty(this.server);
  }
}

/** Runs the work with so many items at once. */
export function inParallel<T, R>(
  all: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  return parallel(all.length, atOnce, (index) => work(all[index] as T));
}
