/**
 * Owns the one commit of a sandbox: decide, persist, arm the alarm, and only then act.
 * Does not own decisions (core) nor the calls that reach it (object.ts).
 */

import { isAlive } from "../../container/agent-client.ts";
import type { Container } from "../../container/container.ts";
import { admit } from "../../core/sandbox/admit.ts";
import type { Life, SandboxRecord, SandboxSpec } from "../../core/sandbox/record.ts";
import {
  createRecord,
  nextDeadline,
  pending,
  type SandboxEvent,
  step,
} from "../../core/sandbox/step.ts";
import { BerthError, unknownSandbox } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import { perform } from "./effects.ts";
import { newStart } from "./random.ts";
import type { SandboxStore } from "./store.ts";

export class SandboxActor {
  readonly #state: DurableObjectState;
  readonly #store: SandboxStore;
  readonly #openContainer: (id: string) => Container;
  #record: SandboxRecord | undefined;
  #container: Container | undefined;
  /** Effects under way, by what they do: a repeated one joins. */
  readonly #underWay = new Map<string, Promise<void>>();
  #resumed = false;
  readonly #watchers = new Set<() => void>();
  /** The life that has answered this instance of the object. After an eviction it is asked first. */
  #seenAlive: string | undefined;
  #confirming: Promise<void> | undefined;

  constructor(
    state: DurableObjectState,
    store: SandboxStore,
    openContainer: (id: string) => Container,
  ) {
    this.#state = state;
    this.#store = store;
    this.#openContainer = openContainer;
    this.#record = store.load();
  }

  get record(): SandboxRecord | undefined {
    return this.#record;
  }

  /** The record, for a caller of its tenant. A foreign one learns no more than of an invented id. */
  recordFor(tenant: string): SandboxRecord {
    if (this.#record === undefined || this.#record.spec.tenant !== tenant) throw unknownSandbox();
    return this.#record;
  }

  get container(): Container {
    if (this.#record === undefined) throw unknownSandbox();
    this.#container ??= this.#openContainer(this.#record.spec.id);
    return this.#container;
  }

  create(spec: SandboxSpec): void {
    this.#record = createRecord(spec, newStart(), Date.now());
    this.#store.create(this.#record);
    this.#committed(this.#record, "create");
  }

  commit(event: SandboxEvent): void {
    if (this.#record === undefined) return;
    const next = step(this.#record, event, Date.now());
    if (next === this.#record) return;
    this.#record = next;
    this.#store.update(next);
    this.#committed(next, event.type);
  }

  /** At each call: a fresh instance of the object takes up what an earlier one may have left undone. */
  resume(): void {
    if (this.#resumed) return;
    this.#resumed = true;
    this.pursue();
  }

  /** Does what the state wants done: after a commit, on a fresh wake, and when the alarm rings. */
  pursue(): void {
    if (this.#record === undefined) return;
    const effect = pending(this.#record, Date.now());
    if (effect === undefined) return;
    const key = effect.type === "start" ? `start ${effect.start.startId}` : effect.type;
    if (this.#underWay.has(key)) return;
    const work = perform(effect, this).finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, work);
    this.#state.waitUntil(work);
  }

  /** What is under way now; none of it rejects. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay.values());
  }

  startsUnderWay(): Promise<void>[] {
    return [...this.#underWay].filter(([key]) => key.startsWith("start ")).map(([, work]) => work);
  }

  /** Rows are on disk. Control of a container does not wait for that by itself. */
  durable(): Promise<void> {
    return this.#state.storage.sync();
  }

  /** The life that a gated call may use; starts a lost container again and waits for it. */
  async ready(): Promise<Life> {
    const until = Date.now() + limits.waitMaxMs;
    for (;;) {
      if (this.#record === undefined) throw unknownSandbox();
      const admission = admit(this.#record);
      if ("refuse" in admission) throw admission.refuse;
      if ("go" in admission) {
        if (this.#seenAlive === admission.go.incarnation) return admission.go;
        await this.confirm(admission.go);
        continue;
      }
      if ("wake" in admission) {
        this.commit({ type: "wake", start: newStart() });
        continue;
      }
      if (!(await this.#change(until - Date.now()))) {
        throw new BerthError("unavailable", "The sandbox is still starting.", {
          hint: "Try again in a moment.",
          facts: { state: "starting" },
        });
      }
    }
  }

  /** Asks a life in doubt; one that does not answer is lost. Callers at the same time share one question. */
  async confirm(life: Life): Promise<void> {
    this.#confirming ??= this.#ask(life).finally(() => {
      this.#confirming = undefined;
    });
    await this.#confirming;
  }

  async #ask(life: Life): Promise<void> {
    if (await isAlive(this.container, life, limits.aliveMs)) {
      this.#seenAlive = life.incarnation;
      return;
    }
    this.commit({ type: "lost", incarnation: life.incarnation, reason: "container_lost" });
  }

  /** Resolves when `done` holds, or when the time is over. */
  async until(done: (record: SandboxRecord) => boolean, waitMs: number): Promise<void> {
    const end = Date.now() + waitMs;
    while (this.#record !== undefined && !done(this.#record)) {
      if (!(await this.#change(end - Date.now()))) return;
    }
  }

  async forget(): Promise<void> {
    this.#record = undefined;
    await this.#state.storage.deleteAll();
  }

  #committed(record: SandboxRecord, why: string): void {
    const deadline = nextDeadline(record);
    // Both are rows of the same commit as the state; in this storage they finish at once.
    if (deadline === undefined) void this.#state.storage.deleteAlarm();
    else void this.#state.storage.setAlarm(deadline.at);
    if (record.state.name === "running") this.#seenAlive = record.state.life.incarnation;
    log({ sandbox: record.spec.id, state: record.state.name, why, next: deadline?.why });
    for (const wake of this.#watchers) wake();
    this.pursue();
  }

  /** False when nothing changed in time. */
  #change(waitMs: number): Promise<boolean> {
    if (waitMs <= 0) return Promise.resolve(false);
    return new Promise((resolve) => {
      const finish = (changed: boolean) => {
        clearTimeout(timer);
        this.#watchers.delete(woken);
        resolve(changed);
      };
      const woken = () => finish(true);
      const timer = setTimeout(() => finish(false), waitMs);
      this.#watchers.add(woken);
    });
  }
}

function log(line: Record<string, string | undefined>): void {
  console.log(JSON.stringify({ at: new Date().toISOString(), ...line }));
}
