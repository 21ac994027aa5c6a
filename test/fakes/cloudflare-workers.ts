/** Replaces the module `cloudflare:workers` where the Worker runs in Node: its three base classes. */
export class DurableObject<Env = unknown> {
  protected readonly ctx: DurableObjectState;
  protected readonly env: Env;

  constructor(ctx: DurableObjectState, env: Env) {
    this.ctx = ctx;
    this.env = env;
  }
}

export class WorkerEntrypoint<Env = unknown, Props = unknown> {
  protected readonly ctx: { props: Props };
  protected readonly env: Env;

  constructor(ctx: { props: Props }, env: Env) {
    this.ctx = ctx;
    this.env = env;
  }
}

export class RpcTarget {}
