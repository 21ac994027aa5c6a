/** Lets a call into a sandbox: checks the caller, resumes what was left unfinished, and returns errors as results. */
import {
  type PortRequestCall,
  portRequestHeader,
  refusalHeader,
  type SocketCall,
  socketCallHeader,
} from "../../../protocol/internal/socket-call.ts";
import { readTransferCall, transferHeader } from "../../../protocol/internal/transfer-call.ts";
import type { Caller } from "../../../protocol/rights.ts";
import { errorResponse, type Result, toResult, type WireResponse } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";
import { forwardPortRequest } from "../agent/port-requests.ts";
import { transferFile } from "../agent/transfers.ts";
import * as terminals from "../calls/terminals.ts";
import type { LeaseSockets } from "../lease/lease-socket.ts";
import { isRevocable, type Opener, openerOf } from "./opener.ts";
import { revocable } from "./revocable.ts";
import * as rights from "./rights.ts";

type CheckedCaller = Pick<Caller, "tenant" | "token" | "keyId">;

export class Dispatcher {
  readonly #actor: SandboxActor;
  readonly #sockets: LeaseSockets;

  constructor(actor: SandboxActor, sockets: LeaseSockets) {
    this.#actor = actor;
    this.#sockets = sockets;
  }

  run<T>(
    caller: CheckedCaller,
    serve: (actor: SandboxActor) => T | Promise<T>,
  ): Promise<Result<T>> {
    return toResult(() => {
      this.#admit(caller);
      return serve(this.#actor);
    });
  }

  /** For verbs whose response is passed on as the agent wrote it; errors have the same form. */
  async respond<Answer extends WireResponse>(
    caller: CheckedCaller,
    requestId: string,
    serve: (actor: SandboxActor) => Promise<Answer>,
  ): Promise<Answer | Response> {
    try {
      this.#admit(caller);
      const response = await serve(this.#actor);
      const opener = openerOf(caller);
      return isRevocable(opener) ? revocable(this.#actor, response, opener) : response;
    } catch (error) {
      return errorResponse(error, requestId);
    }
  }

  /**
   * Serves what RPC cannot carry: WebSockets, port requests and bytes of files. A header that only the Worker writes
   * names the caller and the purpose.
   */
  async fetch(request: Request): Promise<Response> {
    const requestId = request.headers.get("berth-request-id") ?? "";
    const transfer = request.headers.get(transferHeader);
    try {
      if (transfer !== null) {
        const call = readTransferCall(transfer);
        return await this.respond(call.caller, requestId, (actor) =>
          transferFile(actor, request, call, requestId),
        );
      }
      const port = request.headers.get(portRequestHeader);
      if (port !== null) {
        this.#actor.reconciler.resume();
        const call = JSON.parse(port) as PortRequestCall;
        return await forwardPortRequest(this.#actor, request, call, requestId).catch(
          (error: unknown) => {
            const refusal = errorResponse(error, requestId);
            refusal.headers.set(refusalHeader, "1");
            return refusal;
          },
        );
      }
      const call = JSON.parse(request.headers.get(socketCallHeader) ?? "null") as SocketCall;
      return await this.#connect(call, requestId);
    } catch (error) {
      return errorResponse(error, requestId);
    }
  }

  async #connect(call: SocketCall, requestId: string): Promise<Response> {
    const actor = this.#actor;
    const opener = this.#admitSocket(call);
    if (call.kind === "terminal") return terminals.connect(actor, call, opener, requestId);
    actor.refuseIfDestroyed();
    await actor.link.ensureGreeted();
    // The sandbox may have been destroyed meanwhile.
    actor.refuseIfDestroyed();
    actor.revocation.refuse(opener);
    return this.#sockets.connect(call.acquire, call.leaseToken, opener);
  }

  #admit(caller: CheckedCaller): void {
    rights.checkCaller(this.#actor, caller);
    this.#actor.reconciler.resume();
  }

  /** Returns who opens the WebSocket, or created its ticket. */
  #admitSocket(call: SocketCall): Opener {
    if (call.ticket === undefined) {
      this.#admit(call.caller);
      return openerOf(call.caller);
    }
    const opener = rights.spendConnectTicket(this.#actor, call.ticket, call.kind);
    this.#actor.reconciler.resume();
    return opener;
  }
}
