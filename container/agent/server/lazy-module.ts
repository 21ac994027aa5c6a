/**
 * Loads a module of the agent with its first call, so that an idle sandbox does not pay for it. Such a module has no
 * state of its own: what it writes is gated work, what it sends ends with its connection.
 */
import type { AgentModule, ModuleRequest } from "./module.ts";

type Routes = { handle(call: ModuleRequest): Promise<Response> | Response };

export class LazyModule implements AgentModule {
  readonly count = 0;
  readonly #load: () => Promise<Routes>;
  #routes: Promise<Routes> | undefined;

  constructor(load: () => Promise<Routes>) {
    this.#load = load;
  }

  async handle(call: ModuleRequest): Promise<Response> {
    this.#routes ??= this.#load();
    return (await this.#routes).handle(call);
  }

  async endAll(): Promise<void> {}
}
