/**
 * Owns the archive part of the agent: what is told of it without anything of it being loaded.
 * Does not own the routes (routes.ts), which come with the first call.
 */
import { type Sessions, sessionsIn } from "../files/sessions.ts";
import type { Transfers } from "../files/transfers.ts";
import type { Part, PartCall } from "../part.ts";
import type { Ground } from "../sandbox.ts";
import type { ArchiveRoutes } from "./routes.ts";

export class ArchivePart implements Part {
  readonly #ground: Ground;
  readonly #transfers: Transfers;
  readonly #sessions: () => Sessions | undefined;
  #routes: Promise<ArchiveRoutes> | undefined;

  constructor(ground: Ground, transfers: Transfers, sessions: () => object | undefined) {
    this.#ground = ground;
    this.#transfers = transfers;
    this.#sessions = () => sessionsIn(sessions());
  }

  /** Nothing stays when a call is over. */
  readonly count = 0;

  async answer(call: PartCall): Promise<Response> {
    this.#routes ??= import("./routes.ts").then(
      ({ ArchiveRoutes }) => new ArchiveRoutes(this.#ground, this.#transfers, this.#sessions),
    );
    return (await this.#routes).answer(call);
  }

  /** What is unpacked ends with the gated work; what is sent, with its connection. */
  async endAll(): Promise<void> {}
}
