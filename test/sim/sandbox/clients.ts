/**
 * The clients of a plan, each with its steps in order: they send requests, repeat lost ones, and give up. See
 * observer.ts and quiet.ts for what must hold.
 */
import { exec } from "../../../src/objects/sandbox/calls/exec.ts";
import * as leases from "../../../src/objects/sandbox/lease/leases.ts";
import * as lifecycle from "../../../src/objects/sandbox/lifecycle/lifecycle.ts";
import * as metadata from "../../../src/objects/sandbox/metadata.ts";
import type { LeaseGranted } from "../../../src/protocol/lease.ts";
import type { MetadataAnswer } from "../../../src/protocol/metadata.ts";
import type { Outcome } from "../simulated-object.ts";
import { performActions } from "../steps.ts";
import type { CommandSpec } from "./agent.ts";
import { bodyOf, repeatUntilKnown } from "./idempotent-calls.ts";
import type { SimSandbox } from "./sandbox.ts";
import type { Action, Exec, LeaseStep, Plan } from "./script.ts";
import type { World } from "./world.ts";

const triesMax = 40;

/** Resolves when all clients have finished their steps. */
export async function serveClients(world: World, plan: Plan): Promise<void> {
  await create(world, plan);
  const clients = Array.from({ length: plan.clients }, (_, client) => new Client(world, client));
  await performActions(world, plan.steps, clients);
}

async function create(world: World, { spec }: Plan): Promise<void> {
  for (let tries = 0; tries < triesMax; tries++) {
    const call = { spec, metadata: {}, start: true };
    const made = await world.object.call("create", (actor) => lifecycle.make(actor, call));
    if ("ok" in made) return;
    await world.sleep(500, "create again");
  }
}

export class Client {
  readonly #world: World;
  readonly #name: string;
  #count = 0;

  constructor(world: World, index: number | string) {
    this.#world = world;
    this.#name = `c${index}`;
  }

  async perform(action: Action): Promise<void> {
    const name = `${this.#name}-${this.#count++}`;
    switch (action.type) {
      case "lease":
        return this.#lease(name, action);
      case "exec":
        await this.exec(name, action, undefined);
        return;
      case "pause": {
        const { force, waitMs } = action;
        const caller = { waitMs, holder: `alone-${name}`, mayWake: false };
        return this.#call("pause", `${name} pauses${force ? " by force" : ""}`, (actor) =>
          lifecycle.pause(actor, caller, force ? { by: "somebody" } : undefined, false),
        );
      }
      case "start":
        return this.#call("start", `${name} starts it`, lifecycle.start);
      case "touch":
        return this.#call("touch", `${name} touches`, lifecycle.touch);
      case "look":
        return this.#call("look", `${name} looks`, lifecycle.get);
      case "break":
        return this.#call("break", `${name} breaks the lease`, (actor) =>
          leases.breakLease(actor, "sim", "the plan"),
        );
      case "destroy":
        return this.#call("destroy", `${name} destroys it`, (actor) =>
          lifecycle.destroy(
            actor,
            { mayWake: false },
            action.force ? { by: "somebody" } : undefined,
          ),
        );
      case "patch": {
        const { key, value, isMatched } = action;
        const seen = isMatched ? await this.#readMetadata(name) : undefined;
        const ifMatch = seen !== undefined && "ok" in seen ? seen.ok.version : undefined;
        return this.#call(
          "patch",
          `${name} patches ${key}`,
          (actor) => metadata.patch(actor, { [key]: value }, ifMatch),
          (answer) => this.#recordMetadata(answer),
        );
      }
      case "put": {
        const seen = await this.#readMetadata(name);
        if (!("ok" in seen)) return this.#note("read", seen);
        const { version } = seen.ok;
        return this.#call(
          "put",
          `${name} replaces the metadata`,
          (actor) => metadata.replace(actor, { put: action.value }, version),
          (answer) => this.#recordMetadata(answer),
        );
      }
    }
  }

  /** Acquires the lease; repeats a request whose response was lost, and polls while it is queued. */
  async acquire(
    holder: string,
    action: Extract<Action, { type: "lease" }>,
  ): Promise<LeaseGranted | undefined> {
    const { ttlMs, waitMs, queueMs } = action;
    let ticket = action.hasTicket ? this.#world.random.name(24) : undefined;
    for (let tries = 0; tries < triesMax; tries++) {
      const outcome = await this.#world.object.call(
        `${holder} acquires`,
        (actor) => leases.acquire(actor, { holder, ttlMs, waitMs, queueMs, ticket }),
        (answer) => {
          if ("token" in answer)
            this.#world.observer.leases.recordGrant(answer.fence, answer.token);
        },
      );
      this.#note("acquire", outcome);
      if ("refused" in outcome) return undefined;
      if ("lost" in outcome) {
        if (ticket === undefined) return undefined;
        await this.#world.sleep(this.#world.random.between(1, 2_000), `${holder} asks again`);
        continue;
      }
      if ("token" in outcome.ok) return outcome.ok;
      this.#world.count("outcome", "a waiter polled");
      if (action.leavesQueue) return undefined;
      ticket = outcome.ok.ticket;
      const isLate = this.#world.random.chance(0.1);
      const pollMs = this.#world.random.between(0, isLate ? 40_000 : 10_000);
      await this.#world.sleep(pollMs, `${holder} polls`);
    }
    return undefined;
  }

  async exec(name: string, action: Exec, token: string | undefined): Promise<Outcome<string>> {
    if (action.key === undefined) return this.#execOnce(name, action, token, undefined);
    const key = `${name}-${this.#count++}`;
    const call = () => this.#execOnce(name, action, token, key);
    return repeatUntilKnown(this.#world, key, action.key, call);
  }

  async #execOnce(
    name: string,
    action: Exec,
    token: string | undefined,
    key: string | undefined,
  ): Promise<Outcome<string>> {
    const { runMs, waitMs, mayWake, leaveAfterMs } = action;
    const isAlone = token === undefined && waitMs !== undefined;
    const owner = isAlone ? `alone-${name}` : name;
    const isLeased = token !== undefined || isAlone;
    const work: CommandSpec = {
      owner,
      isLeased,
      runMs,
      ...(action.writes === undefined ? {} : { writes: action.writes }),
      ...(key === undefined ? {} : { key }),
    };
    const call = {
      command: JSON.stringify(work),
      timeoutMs: 60_000,
      maxOutputBytes: 0,
      encoding: "utf8" as const,
    };
    const outcome = await this.#world.object.call(`${owner} runs ${runMs} ms`, async (actor) => {
      const alone = { waitMs: isAlone ? waitMs : undefined, holder: owner };
      const caller = { token, ...alone, mayWake, key };
      const reply = await exec({ actor, caller, requestId: "sim" }, call);
      if (reply instanceof Response) return this.#read(reply, leaveAfterMs);
      this.#world.observer.recordRefusal(actor, owner, bodyOf(reply.json).error?.code);
      return reply.json;
    });
    const code = "ok" in outcome ? bodyOf(outcome.ok).error?.code : undefined;
    if (code !== undefined) this.#world.count("answer", `exec: ${code}`);
    else this.#note("exec", outcome);
    return outcome;
  }

  async release(name: string, token: string, force: boolean): Promise<void> {
    for (let tries = 0; tries < triesMax; tries++) {
      const outcome = await this.#world.object.call(
        `${name} releases${force ? " by force" : ""}`,
        (actor) => leases.release(actor, token, force),
        () => this.#world.observer.leases.recordRelease(token),
      );
      this.#note("release", outcome);
      if ("ok" in outcome) return;
      if ("refused" in outcome && outcome.refused.code !== "lease_busy") return;
      await this.#world.sleep(this.#world.random.between(1, 3_000), `${name} releases again`);
    }
  }

  async #lease(name: string, action: Extract<Action, { type: "lease" }>): Promise<void> {
    const granted = await this.acquire(name, action);
    if (granted === undefined) return;
    const { token } = granted;
    const { inner, end } = action;
    const last = end === "overlap" || end === "force" ? inner.at(-1) : undefined;
    for (const step of inner) if (step !== last) await this.#inside(name, step, token);
    const lastDone = last === undefined ? undefined : this.#inside(name, last, token);
    if (end !== "forget") await this.release(name, token, end === "force");
    await lastDone;
  }

  async #inside(name: string, inner: LeaseStep, token: string): Promise<void> {
    if (inner.type === "rest") return this.#world.sleep(inner.ms, `${name} rests`);
    if (inner.type === "exec") {
      await this.exec(name, inner, token);
      return;
    }
    await this.#call("renew", `${name} renews`, (actor) => leases.renew(actor, token, undefined));
  }

  async #read(response: Response, leaveAfterMs: number | undefined): Promise<string> {
    const reader = response.body?.getReader();
    if (reader === undefined) return "";
    const leave = () => {
      this.#world.count("fault", "caller goes away");
      void reader.cancel().catch(() => {});
    };
    const stay =
      leaveAfterMs === undefined
        ? () => {}
        : this.#world.schedule.after(leaveAfterMs, "the caller goes away", leave);
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const read = await reader.read();
      if (read.done) break;
      text += decoder.decode(read.value, { stream: true });
    }
    stay();
    return text;
  }

  async #call<T>(
    verb: string,
    ...call: Parameters<typeof SimSandbox.prototype.call<T>>
  ): Promise<void> {
    this.#note(verb, await this.#world.object.call(...call));
  }

  #readMetadata(name: string): Promise<Outcome<MetadataAnswer>> {
    return this.#world.object.call(`${name} reads`, metadata.get, (answer) =>
      this.#recordMetadata(answer),
    );
  }

  #recordMetadata({ version, metadata }: MetadataAnswer): void {
    this.#world.observer.recordMetadata(version, metadata);
  }

  #note(verb: string, outcome: Outcome<unknown>): void {
    this.#world.countOutcome(this.#name, verb, outcome);
  }
}
