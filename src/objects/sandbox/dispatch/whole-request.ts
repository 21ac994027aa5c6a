/**
 * Serves what reaches a sandbox as a whole request because RPC cannot carry it: WebSockets, port requests and bytes of
 * files. A header that only the Worker writes names the caller and the purpose.
 */
import {
  type PortRequestCall,
  portRequestHeader,
  type SocketCall,
  socketCallHeader,
} from "../../../protocol/internal/socket-call.ts";
import { readTransferCall, transferHeader } from "../../../protocol/internal/transfer-call.ts";
import { errorResponse } from "../../shared/to-result.ts";
import type { SandboxActor } from "../actor.ts";
import { forwardPortRequest } from "../agent/port-requests.ts";
import { transferFile } from "../agent/transfers.ts";
import * as terminals from "../calls/terminals.ts";
import type { LeaseSockets } from "../lease/lease-socket.ts";
import { refuseIfDestroyed } from "../lifecycle/refuse-if-destroyed.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { revocable } from "./revocable.ts";
import * as rights from "./rights.ts";

type RequestDeps = { actor: SandboxActor; dispatcher: Dispatcher; sockets: LeaseSockets };

export async function wholeRequest(deps: RequestDeps, request: Request): Promise<Response> {
  const requestId = request.headers.get("berth-request-id") ?? "";
  try {
    const { actor, dispatcher } = deps;
    const portRequest = request.headers.get(portRequestHeader);
    if (portRequest !== null) {
      dispatcher.wake();
      return await forwardPortRequest(
        actor,
        request,
        JSON.parse(portRequest) as PortRequestCall,
        requestId,
      );
    }
    const transferCall = request.headers.get(transferHeader);
    if (transferCall !== null) {
      const call = readTransferCall(transferCall);
      const { token } = call.caller;
      rights.checkCaller(actor, call.caller);
      dispatcher.wake();
      const response = await transferFile(actor, request, call, requestId);
      return token === undefined ? response : revocable(actor, response, token.generation);
    }
    const call = JSON.parse(request.headers.get(socketCallHeader) ?? "null") as SocketCall;
    return await connect(deps, call, requestId);
  } catch (error) {
    return errorResponse(error, requestId);
  }
}

async function connect(
  { actor, dispatcher, sockets }: RequestDeps,
  call: SocketCall,
  requestId: string,
): Promise<Response> {
  const generation = admit(actor, call);
  dispatcher.wake();
  if (call.kind === "terminal") return await terminals.connect(actor, call, generation, requestId);
  refuseIfDestroyed(actor);
  await actor.link.ensureGreeted();
  // The sandbox may have been destroyed meanwhile.
  refuseIfDestroyed(actor);
  actor.revocation.refuse(generation);
  return sockets.connect(call.acquire, call.leaseToken, generation);
}

/** Returns the generation of the token that opens the WebSocket or created its ticket; undefined for a key. */
function admit(actor: SandboxActor, call: SocketCall): number | undefined {
  if (call.ticket !== undefined) {
    rights.checkTenantless(actor);
    return rights.spendConnectTicket(actor, call.ticket, call.kind);
  }
  rights.checkCaller(actor, call.caller);
  return call.caller.token?.generation;
}
