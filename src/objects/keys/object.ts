/** The Durable Object of an installation's keys; there is one. */
import { DurableObject } from "cloudflare:workers";
import type { Env } from "../../config.ts";
import type { Key, KeyCall, KeyFile } from "../../protocol/key.ts";
import { sleepOf } from "../shared/beat.ts";
import { type DurableHost, durableHost } from "../shared/durable-host.ts";
import { type Result, toResult } from "../shared/result.ts";
import { type HeldKey, KeysActor, type SessionHolder, type SignInBy } from "./actor.ts";

export class KeysObject extends DurableObject<Env> {
  readonly #host: DurableHost;
  readonly #actor: KeysActor;

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    this.#host = durableHost(state, { sleep: sleepOf(state, env), ring: () => this.alarm() });
    this.#actor = new KeysActor(this.#host, (tenant, id) =>
      env.DIRECTORY.getByName(tenant).endKey(id),
    );
  }

  async find(by: { hash: string } | { id: string }): Promise<HeldKey | null> {
    return this.#actor.find(by);
  }

  async fileHashes(): Promise<string[]> {
    return this.#actor.fileHashes();
  }

  /** All that have or had a key here, or were noted. */
  async tenants(): Promise<string[]> {
    return this.#actor.tenants();
  }

  async noteTenant(tenant: string): Promise<void> {
    this.#actor.noteTenant(tenant);
  }

  create(call: KeyCall, hash: string): Promise<Result<Key>> {
    return toResult(() => this.#actor.create(call, hash));
  }

  async list(): Promise<Result<Key[]>> {
    return { ok: this.#actor.list() };
  }

  remove(id: string): Promise<Result<null>> {
    return toResult(() => {
      this.#actor.remove(id);
      return null;
    });
  }

  replaceFile(file: KeyFile): Promise<Result<Key[]>> {
    return toResult(() => this.#actor.replaceFile(file));
  }

  createSignIn(holder: SessionHolder, ticket: string): Promise<Result<number>> {
    return toResult(() => this.#actor.createSignIn(holder, ticket));
  }

  signIn(by: SignInBy, hash: string): Promise<Result<HeldKey>> {
    return toResult(() => this.#actor.signIn(by, hash));
  }

  signOut(id: string): Promise<Result<null>> {
    return toResult(() => {
      this.#actor.signOut(id);
      return null;
    });
  }

  override async alarm(): Promise<void> {
    this.#host.alarmRang();
    await this.#actor.alarm();
  }
}
