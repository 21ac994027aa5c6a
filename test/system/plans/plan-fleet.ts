/**
 * Owns a plan of real sandboxes for the length of a test: its members in the order in which runs hold them, what can
 * be seen of their trees, and that its end leaves nothing. Does not own the server, nor what tests ask of the plan.
 */
import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { connect } from "../../../src/client/connect.ts";
import type { PlanApi } from "../../../src/protocol/api.ts";
import type { Commit } from "../../../src/protocol/plan.ts";
import { caught, copiesOf, kept, seen } from "../files/workspace.ts";
import type { Server } from "../server.ts";
import { until } from "../until.ts";

export type Seat = { key: string; id: string };

export class Fleet {
  server: Server;
  readonly name: string;
  seats: Seat[] = [];

  static async of(server: Server, name: string, count: number): Promise<Fleet> {
    const fleet = new Fleet(server, name);
    await fleet.plan.put();
    const keys = Array.from({ length: count }, (_, n) => `m${n}`);
    const made = await inSteps(keys, 8, async (key) => {
      const { sandbox } = await fleet.plan.putMember(key, { create: {} });
      return { key, id: sandbox };
    });
    fleet.seats = made.sort((a, b) => (a.id < b.id ? -1 : 1));
    return fleet;
  }

  private constructor(server: Server, name: string) {
    this.server = server;
    this.name = name;
  }

  get plan(): PlanApi {
    return connect({ url: this.server.url, key: this.server.key }).plan(this.name);
  }

  get ids(): string[] {
    return this.seats.map(({ id }) => id);
  }

  /** Of one of them, by its place in the order of runs. */
  id(n: number): string {
    const seat = this.seats[n];
    if (seat === undefined) throw new Error(`the plan has no member ${n}`);
    return seat.id;
  }

  /** Every tree, to the byte. */
  seen(): Promise<string[]> {
    return inSteps(this.ids, 4, (id) => seen(this.server, id));
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
      () => kept(this.server, "snapshots").length === ofRuns,
    );
  }

  /** With all of its sandboxes; of a server that has no others. */
  async end(): Promise<void> {
    await this.plan.remove({ sandboxes: "destroy" });
    await until("its trees are gone", () =>
      kept(this.server, "trees").every((id) => !this.ids.includes(id)),
    );
    await until("the trash is empty", () => kept(this.server, "trash").length === 0, 60_000);
  }
}

/** So many at once. */
export async function inSteps<T, R>(
  all: readonly T[],
  atOnce: number,
  work: (one: T) => Promise<R>,
): Promise<R[]> {
  const done: R[] = [];
  for (let at = 0; at < all.length; at += atOnce) {
    done.push(...(await Promise.all(all.slice(at, at + atOnce).map(work))));
  }
  return done;
}

const stopped = new Set<number>();

/** The copy of this sandbox's tree that is made next, stopped in the middle. */
export async function stoppedCopy(server: Server, id: string): Promise<number> {
  const engine = server.processOf("container/engine/main.ts").pid;
  const look = () => copiesOf(engine).find((one) => read(one, "cmdline").includes(`/${id}/`));
  const copy = await caught(`a copy of ${id}`, look);
  process.kill(copy, "SIGSTOP");
  stopped.add(copy);
  await until("it stands still", () => /^State:\s+T/m.test(read(copy, "status")));
  return copy;
}

/** After a test that failed in the middle. */
export function letAllGo(): void {
  for (const copy of stopped) letGo(copy);
}

export function letGo(copy: number): void {
  stopped.delete(copy);
  try {
    process.kill(copy, "SIGCONT");
  } catch {
    // It was ended, as what it copied was.
  }
}

function read(pid: number, what: "cmdline" | "status"): string {
  try {
    return readFileSync(`/proc/${pid}/${what}`, "utf8");
  } catch {
    // It ended while we looked.
    return "";
  }
}
