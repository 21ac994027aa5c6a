/**
 * Owns the calls that reach one sandbox, and its alarm. A reader learns nothing about sandboxes here.
 */
import { DurableObject } from "cloudflare:workers";
import { configOf, type Env } from "../../config.ts";
import type { Container } from "../../container/container.ts";
import { openContainer } from "../../container/open.ts";
import type { SandboxSpec } from "../../core/sandbox/record.ts";
import { view } from "../../core/sandbox/view.ts";
import { asBerthError, errorBody, errors } from "../../protocol/errors.ts";
import type { ExecCall } from "../../protocol/exec.ts";
import { limits } from "../../protocol/limits.ts";
import type { Sandbox } from "../../protocol/sandbox.ts";
import { type Answer, type Reply, refused } from "../answer.ts";
import { SandboxActor } from "./actor.ts";
import { exec } from "./exec.ts";
import { SandboxStore } from "./store.ts";

export class SandboxObject extends DurableObject<Env> {
  readonly #actor: SandboxActor;

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    const store = new SandboxStore(state.storage);
    this.#actor = new SandboxActor(state, store, (id) => this.openContainer(id));
  }

  protected openContainer(id: string): Container {
    return openContainer(this.ctx.container, configOf(this.env).engine, id);
  }

  /** Durable when it answers; waits up to `waitMs` for the container. */
  async create(spec: SandboxSpec, waitMs: number): Promise<Answer<Sandbox>> {
    return this.#answer(async () => {
      if (this.#actor.record === undefined) this.#actor.create(spec);
      this.#actor.recordFor(spec.tenant);
      await this.#actor.until((record) => record.state.name !== "starting", waitMs);
      return view(this.#actor.recordFor(spec.tenant));
    });
  }

  async get(tenant: string): Promise<Answer<Sandbox>> {
    return this.#answer(async () => view(this.#actor.recordFor(tenant)));
  }

  async destroy(tenant: string): Promise<Answer<Sandbox>> {
    return this.#answer(async () => {
      this.#actor.recordFor(tenant);
      this.#actor.commit({ type: "destroy", reason: "requested" });
      await this.#actor.until((record) => record.state.name === "destroyed", limits.waitMaxMs);
      return view(this.#actor.recordFor(tenant));
    });
  }

  /** The answer of REST, streams and errors included: what the agent wrote is passed on untouched. */
  async exec(tenant: string, call: ExecCall, requestId: string): Promise<Reply> {
    try {
      this.#actor.resume();
      this.#actor.recordFor(tenant);
      return await exec(this.#actor, call, requestId);
    } catch (error) {
      const known = asBerthError(error);
      if (known === undefined) throw error;
      return Response.json(errorBody(known, requestId), { status: errors[known.code].status });
    }
  }

  override async alarm(): Promise<void> {
    this.#actor.commit({ type: "deadline" });
    this.#actor.pursue();
    await this.#actor.settled();
  }

  async #answer<T>(work: () => Promise<T>): Promise<Answer<T>> {
    try {
      this.#actor.resume();
      return { ok: await work() };
    } catch (error) {
      const known = asBerthError(error);
      if (known === undefined) throw error;
      return refused(known);
    }
  }
}
