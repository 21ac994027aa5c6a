/**
 * Owns the git part of the agent: what is told of it without anything of it being loaded.
 * Does not own the routes (routes.ts), which come with the first call.
 */
import { type Sessions, sessionsIn } from "../files/sessions.ts";
import type { Part, PartCall } from "../part.ts";
import type { Ground } from "../sandbox.ts";
import type { GitRoutes } from "./routes.ts";

export class GitPart implements Part {
  readonly #ground: Ground;
  readonly #sessions: () => Sessions | undefined;
  #routes: Promise<GitRoutes> | undefined;

  constructor(ground: Ground, sessions: () => object | undefined) {
    this.#ground = ground;
    this.#sessions = () => sessionsIn(sessions());
  }

  /** Nothing stays when a call is over. */
  readonly count = 0;

  async answer(call: PartCall): Promise<Response> {
    this.#routes ??= import("./routes.ts").then(
      ({ GitRoutes }) => new GitRoutes(this.#ground, this.#sessions),
    );
    return (await this.#routes).answer(call);
  }

  /** Clones end with the gated work. */
  async endAll(): Promise<void> {}
}
