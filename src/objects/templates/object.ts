/** The Durable Object of one tenant's templates: passes calls and the alarm to the actor. */
import { DurableObject } from "cloudflare:workers";
import { type Env, readConfig } from "../../config.ts";
import type { Template, TemplateLog, Templates } from "../../protocol/template.ts";
import { engineRuntime } from "../../runtime/engine.ts";
import { sleepOf } from "../shared/beat.ts";
import { type DurableHost, durableHost } from "../shared/durable-host.ts";
import { type Result, toResult } from "../shared/result.ts";
import { type TemplateOrigin, TemplatesActor } from "./actor.ts";
import { builderOf } from "./build-sandbox.ts";
import type { BuildJob } from "./rows.ts";

export class TemplatesObject extends DurableObject<Env> {
  readonly #host: DurableHost;
  readonly #actor: TemplatesActor;

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    this.#host = durableHost(state, { sleep: sleepOf(state, env), ring: () => this.alarm() });
    this.#actor = new TemplatesActor(this.#host, {
      make: (call) => env.DIRECTORY.getByName(call.spec.tenant).make(call),
      builderOf: (build) => builderOf(env, build),
      needsTree: (sandbox, stored) => env.SANDBOX.getByName(sandbox).needsTree(stored),
      removeTree: (stored) => this.removeTree(stored),
    });
  }

  build(reference: string, job: BuildJob): Promise<Result<Template>> {
    return toResult(() => this.#actor.build(reference, job));
  }

  async list(): Promise<Templates> {
    return this.#actor.list();
  }

  get(reference: string, waitMs: number): Promise<Result<Template>> {
    return toResult(() => this.#actor.get(reference, waitMs));
  }

  log(reference: string, after: number, waitMs: number): Promise<Result<TemplateLog>> {
    return toResult(() => this.#actor.log(reference, after, waitMs));
  }

  cancel(reference: string): Promise<Result<Template>> {
    return toResult(() => this.#actor.cancel(reference));
  }

  remove(reference: string): Promise<Result<Template>> {
    return toResult(() => this.#actor.remove(reference));
  }

  origin(reference: string, sandboxes: string[]): Promise<Result<TemplateOrigin>> {
    return toResult(() => this.#actor.origin(reference, sandboxes));
  }

  override async alarm(): Promise<void> {
    this.#host.alarmRang();
    await this.#actor.alarm();
  }

  /** The platform has no call for it: there a saved tree ends by itself. */
  protected async removeTree(stored: string): Promise<void> {
    const { engine } = readConfig(this.env);
    if (engine === undefined) return;
    const { url: baseUrl, secret } = engine;
    await engineRuntime({ id: "templates", baseUrl, secret }).removeSnapshot(stored);
  }
}
