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
import { repeatUntilKnown } from "./idempotent-calls.ts";
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
    const { object } = this.#world;
    const name = `${this.#name}-${this.#count++}`;
    const onMetadata = (answer: MetadataAnswer) =>
      this.#world.observer.recordMetadata(answer.version, answer.metadata);
    switch (action.type) {
      case "lease":
        return this.#lease(name, action);
      case "exec":
        await this.exec(name, action, undefined);
        return;
      case "pause": {
        const caller = { waitMs: action.waitMs, holder: `alone-${name}`, mayWake: false };
        const call = object.call(`${name} pauses${action.force ? " by force" : ""}`, (actor) =>
          lifecycle.pause(actor, caller, action.force ? { by: "somebody" } : undefined, false),
        );
        return this.#note("pause", await call);
      }
      case "start":
        return this.#note("start", await object.call(`${name} starts it`, lifecycle.start));
      case "touch":
        return this.#note("touch", await object.call(`${name} touches`, lifecycle.touch));
      case "look":
        return this.#note("look", await object.call(`${name} looks`, lifecycle.get));
      case "break": {
        const call = object.call(`${name} breaks the lease`, (actor) =>
          leases.breakLease(actor, "sim", "the plan"),
        );
        return this.#note("break", await call);
      }
      case "destroy": {
        const call = object.call(`${name} destroys it`, (actor) =>
          lifecycle.destroy(
            actor,
            { mayWake: false },
            action.force ? { by: "somebody" } : undefined,
          ),
        );
        return this.#note("destroy", await call);
      }
      case "patch": {
        const { key, value, isMatched } = action;
        const seen = isMatched
          ? await object.call(`${name} reads`, metadata.get, onMetadata)
          : undefined;
        const ifMatch = seen !== undefined && "ok" in seen ? seen.ok.version : undefined;
        const call = object.call(
          `${name} patches ${key}`,
          (actor) => metadata.patch(actor, { [key]: value }, ifMatch),
          onMetadata,
        );
        return this.#note("patch", await call);
      }
      case "put": {
        const seen = await object.call(`${name} reads`, metadata.get, onMetadata);
        if (!("ok" in seen)) return this.#note("read", seen);
        const { version } = seen.ok;
        const call = object.call(
          `${name} replaces the metadata`,
          (actor) => metadata.replace(actor, { put: action.value }, version),
          onMetadata,
        );
        return this.#note("put", await call);
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
      this.#world.observer.recordRefusal(actor, owner, codeIn(reply.json));
      return reply.json;
    });
    const code = "ok" in outcome ? codeIn(outcome.ok) : undefined;
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
    const call = this.#world.object.call(`${name} renews`, (actor) =>
      leases.renew(actor, token, undefined),
    );
    this.#note("renew", await call);
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

  #note(verb: string, outcome: Outcome<unknown>): void {
    this.#world.countOutcome(this.#name, verb, outcome);
  }
}

function codeIn(json: string): string | undefined {
  if (json.trim() === "") return undefined;
  const body = JSON.parse(json) as { error?: { code: string } };
  return body.error?.code;
}
