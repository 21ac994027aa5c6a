/**
 * Tells the planes of E2B's clients apart: calls about sandboxes, calls to the daemon of one, and requests to a server in
 * it. The sandbox is named by the host (`<port>-<sandbox>.…`) or by two headers.
 */
import { WireError } from "./errors.ts";

export const daemonPort = 49983;

export type Plane =
  | { kind: "control" }
  | { kind: "daemon"; sandbox: string }
  | { kind: "port"; sandbox: string; port: number };

const label = /^(\d{1,5})-([a-z0-9]{24})(?:-[a-z0-9-]+)?$/;
const controlPaths =
  /^(?:\/v[23])?\/(?:sandboxes|snapshots|templates|volumes|secrets|teams|api-keys)(?:\/|$)/;
const idHeader = "e2b-sandbox-id";
const portHeader = "e2b-sandbox-port";

/** Undefined: the request is of no client of E2B's. */
export function planeOf({ url, headers }: Request): Plane | undefined {
  const { hostname, pathname } = new URL(url);
  const [id, port] = [headers.get(idHeader), headers.get(portHeader)];
  const byHost = hostname.includes(".") ? label.exec(hostname.split(".", 1)[0] ?? "") : null;
  if (byHost !== null) {
    // Servers in sandboxes are served by Berth's own addresses of the same form.
    const isDaemon = Number(byHost[1]) === daemonPort;
    return isDaemon ? { kind: "daemon", sandbox: byHost[2] ?? "" } : undefined;
  }
  if (id === null && port === null) {
    return controlPaths.test(pathname) ? { kind: "control" } : undefined;
  }
  if (id === null || port === null) {
    const missing = id === null ? idHeader : portHeader;
    throw new WireError(400, `the header ${missing} is missing`);
  }
  if (!/^[1-9]\d{0,4}$/.test(port) || Number(port) > 65_535) {
    throw new WireError(400, `the header ${portHeader} must be a port, not ${port.slice(0, 20)}`);
  }
  const sandbox = bareId(id);
  return Number(port) === daemonPort
    ? { kind: "daemon", sandbox }
    : { kind: "port", sandbox, port: Number(port) };
}

/** Clients of an earlier time add a suffix to the id. */
export function bareId(id: string): string {
  return id.split("-", 1)[0] ?? "";
}
