/** Reaches a server in a sandbox that the headers name, if its ports are public. */
import type { WireHost } from "../host.ts";
import { sandboxGoneResponse } from "./errors.ts";

export async function servePort(
  request: Request,
  host: WireHost,
  sandboxId: string,
  port: number,
): Promise<Response> {
  const answer = await host.forward(request, sandboxId, port);
  if (typeof answer !== "string") return answer;
  if (answer !== "port_unreachable") return sandboxGoneResponse(sandboxId);
  const message = "The sandbox is running but port is not open";
  return Response.json({ sandboxId, message, port, code: 502 }, { status: 502 });
}
