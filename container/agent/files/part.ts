/**
 * Owns the files part of the agent: what is told of it without anything of it being loaded.
 * Does not own the routes (routes.ts), which come with the first call.
 */
import type { Part, PartCall } from "../part.ts";
import type { Ground } from "../sandbox.ts";
import type { FileRoutes } from "./routes.ts";
import { type Sessions, sessionsIn } from "./sessions.ts";
import type { Transfers } from "./transfers.ts";

export class FilesPart implements Part {
  readonly #ground: Ground;
  readonly #transfers: Transfers;
  readonly #sessions: () => Sessions | undefined;
  #routes: Promise<FileRoutes> | undefined;

  constructor(ground: Ground, transfers: Transfers, sessions: () => object | undefined) {
    this.#ground = ground;
    this.#transfers = transfers;
    this.#sessions = () => sessionsIn(sessions());
  }

  /** Nothing stays when a call is over. */
  readonly count = 0;

  async answer(call: PartCall): Promise<Response> {
    this.#routes ??= import("./routes.ts").then(
      ({ FileRoutes }) => new FileRoutes(this.#ground, this.#transfers, this.#sessions),
    );
    return (await this.#routes).answer(call);
  }

  /** Writes end with the gated work; reads end with their connections. */
  async endAll(): Promise<void> {}
}
