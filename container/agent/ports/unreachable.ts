/** The error of a port on which no server in the sandbox listens. */
import { BerthError } from "../../../src/protocol/error-codes.ts";

export function portUnreachable(port: number): BerthError {
  return new BerthError("port_unreachable", `Nothing in the sandbox answers on port ${port}.`, {
    hint: `Start a server that listens on 127.0.0.1:${port} or 0.0.0.0:${port}.`,
    facts: { port },
  });
}
