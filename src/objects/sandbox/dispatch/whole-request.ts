/**
 * Owns what reaches a sandbox as a whole request because RPC cannot carry it: WebSockets, visits to ports, bytes of
 * files. The door says in a header who calls and for what. Does not own what each comes to.
 */
import {
  type PortVisit,
  type SocketCall,
  socketCallHeader,
  visitHeader,
} from "../../../protocol/internal/socket-call.ts";
import { readTransferCall, transferHeader } from "../../../protocol/internal/transfer-call.ts";
import { failure } from "../../shared/to-result.ts";
import type { SandboxActor } from "../actor.ts";
import { visit } from "../agent/port-requests.ts";
import { transfer } from "../agent/transfers.ts";
import * as terminals from "../calls/terminals.ts";
import type { LeaseSockets } from "../lease/lease-socket.ts";
import { refuseWhenOver } from "../lifecycle/lifecycle.ts";
import type { Entrance } from "./dispatcher.ts";
import { revocable } from "./revocable.ts";
import * as rights from "./rights.ts";

type Here = { actor: SandboxActor; entrance: Entrance; sockets: LeaseSockets };

export async function wholeRequest(here: Here, request: Request): Promise<Response> {
  const requestId = request.headers.get("berth-request-id") ?? "";
  try {
    const { actor, entrance } = here;
    const visiting = request.headers.get(visitHeader);
    if (visiting !== null) {
      entrance.wake();
      return await visit(actor, request, JSON.parse(visiting) as PortVisit, requestId);
    }
    const transferring = request.headers.get(transferHeader);
    if (transferring !== null) {
      const call = readTransferCall(transferring);
      const { token } = call.caller;
      rights.checkCaller(actor, call.caller);
      entrance.wake();
      const answer = await transfer(actor, request, call, requestId);
      return token === undefined ? answer : revocable(actor, answer, token.generation);
    }
    const call = JSON.parse(request.headers.get(socketCallHeader) ?? "null") as SocketCall;
    return await connect(here, call, requestId);
  } catch (error) {
    return failure(error, requestId);
  }
}

async function connect(
  { actor, entrance, sockets }: Here,
  call: SocketCall,
  requestId: string,
): Promise<Response> {
  const generation = admit(actor, call);
  entrance.wake();
  if (call.kind === "terminal") return await terminals.connect(actor, call, generation, requestId);
  refuseWhenOver(actor);
  await actor.link.known();
  // Somebody may have ended it meanwhile.
  refuseWhenOver(actor);
  actor.revocation.refuse(generation);
  return sockets.connect(call.acquire, call.leaseToken, generation);
}

/** The generation of the token that opens it, or whose ticket does; undefined: a key. */
function admit(actor: SandboxActor, call: SocketCall): number | undefined {
  if (call.ticket !== undefined) {
    rights.checkTenantless(actor);
    return rights.spendConnectTicket(actor, call.ticket, call.kind);
  }
  rights.checkCaller(actor, call.caller);
  return call.caller.token?.generation;
}
