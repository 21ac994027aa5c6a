/**
 * Owns how a call comes in to a sandbox: its caller is checked, what an earlier instance left is taken up, and what is
 * thrown becomes the answer. Does not own what is asked for (object.ts).
 */
import type { Caller } from "../../../protocol/rights.ts";
import type { Answer, Reply } from "../../shared/result.ts";
import { answer, failure } from "../../shared/to-result.ts";
import type { SandboxActor } from "../actor.ts";
import type { LeaseSockets } from "../lease/lease-socket.ts";
import { revocable } from "./revocable.ts";
import { checkCaller } from "./rights.ts";

export class Entrance {
  readonly #actor: SandboxActor;
  readonly #sockets: LeaseSockets;
  #woken = false;

  constructor(actor: SandboxActor, sockets: LeaseSockets) {
    this.#actor = actor;
    this.#sockets = sockets;
  }

  /** The first thing of a fresh instance, whatever woke it. */
  wake(): void {
    if (this.#woken || this.#actor.known === undefined) return;
    this.#woken = true;
    this.#sockets.missing();
    this.#actor.pursuit.resume();
  }

  for<T>(
    caller: Pick<Caller, "tenant" | "token">,
    work: (actor: SandboxActor) => T | Promise<T>,
  ): Promise<Answer<T>> {
    return answer(async () => {
      checkCaller(this.#actor, caller);
      this.wake();
      return work(this.#actor);
    });
  }

  /** Of calls that change what lists show: they answer when lists do, or say that these do not yet. */
  listed<T extends { listed?: false | undefined }>(
    caller: Caller,
    work: (actor: SandboxActor) => T | Promise<T>,
  ): Promise<Answer<T>> {
    return this.for(caller, async (actor) => {
      const told = await work(actor);
      return (await actor.listing.isListed()) ? told : { ...told, listed: false };
    });
  }

  /** Of calls that are answered as REST is, errors included. */
  async reply(
    caller: Caller,
    requestId: string,
    work: (actor: SandboxActor) => Promise<Reply>,
  ): Promise<Reply> {
    try {
      checkCaller(this.#actor, caller);
      this.wake();
      const reply = await work(this.#actor);
      const { token } = caller;
      return token === undefined ? reply : revocable(this.#actor, reply, token.generation);
    } catch (error) {
      return failure(error, requestId);
    }
  }
}
