/**
 * Lets a call into a sandbox: checks the caller, recovers what an earlier instance of the object left, and turns what
 * is thrown into a result.
 */
import type { Caller } from "../../../protocol/rights.ts";
import type { Result, WireResponse } from "../../shared/result.ts";
import { errorResponse, toResult } from "../../shared/to-result.ts";
import type { SandboxActor } from "../actor.ts";
import type { LeaseSockets } from "../lease/lease-socket.ts";
import { revocable } from "./revocable.ts";
import { checkCaller } from "./rights.ts";

export class Dispatcher {
  readonly #actor: SandboxActor;
  readonly #sockets: LeaseSockets;
  #woken = false;

  constructor(actor: SandboxActor, sockets: LeaseSockets) {
    this.#actor = actor;
    this.#sockets = sockets;
  }

  /** The first step of a new instance, whatever woke it. */
  wake(): void {
    if (this.#woken || this.#actor.existing === undefined) return;
    this.#woken = true;
    this.#sockets.recoverSockets();
    this.#actor.reconciler.resume();
  }

  run<T>(
    caller: Pick<Caller, "tenant" | "token">,
    serve: (actor: SandboxActor) => T | Promise<T>,
  ): Promise<Result<T>> {
    return toResult(async () => {
      checkCaller(this.#actor, caller);
      this.wake();
      return serve(this.#actor);
    });
  }

  /** For verbs whose response is passed on as the agent wrote it; errors have the same form. */
  async respond(
    caller: Pick<Caller, "tenant" | "token">,
    requestId: string,
    serve: (actor: SandboxActor) => Promise<WireResponse>,
  ): Promise<WireResponse> {
    try {
      checkCaller(this.#actor, caller);
      this.wake();
      const response = await serve(this.#actor);
      const { token } = caller;
      return token === undefined ? response : revocable(this.#actor, response, token.generation);
    } catch (error) {
      return errorResponse(error, requestId);
    }
  }
}
