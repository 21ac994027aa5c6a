/**
 * Owns a part of the agent that is loaded with its first call and keeps nothing when a call is over: an idle sandbox
 * pays nothing for it. Does not own its routes. What it writes ends with the gated work, what it sends with its
 * connection.
 */
import type { Part, PartCall } from "./module.ts";

type Routes = { answer(call: PartCall): Promise<Response> | Response };

export class LazyPart implements Part {
  readonly count = 0;
  readonly #load: () => Promise<Routes>;
  #routes: Promise<Routes> | undefined;

  constructor(load: () => Promise<Routes>) {
    this.#load = load;
  }

  async answer(call: PartCall): Promise<Response> {
    this.#routes ??= this.#load();
    return (await this.#routes).answer(call);
  }

  async endAll(): Promise<void> {}
}
