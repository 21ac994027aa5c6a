/**
 * Serves clients that were written for E2B, unchanged, over the same verbs as everybody's. Objects, core and agent learn
 * nothing of it.
 */
import type { WireHost } from "../host.ts";
import { serveControl } from "./control.ts";
import { serveDaemon } from "./daemon.ts";
import { WireError } from "./errors.ts";
import { planeOf } from "./plane.ts";
import { servePort } from "./ports.ts";

/** Undefined: the request is of no such client. */
export function serveE2b(request: Request, host: WireHost): Promise<Response> | undefined {
  try {
    const plane = planeOf(request);
    switch (plane?.kind) {
      case undefined:
        return undefined;
      case "control":
        return serveControl(request, host);
      case "daemon":
        return serveDaemon(request, host, plane.sandbox);
      case "port":
        return servePort(request, host, plane.sandbox, plane.port);
    }
  } catch (thrown) {
    if (thrown instanceof WireError) return Promise.resolve(thrown.response());
    throw thrown;
  }
}
