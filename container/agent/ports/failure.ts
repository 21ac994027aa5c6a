/** Says why a server in the sandbox gave no usable response, by the codes of Bun's client. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";

type Failure = { reason: string; problem: string; hint: string };

/** Bun's client has one code for all of these, and counts to this many headers. */
const clientHeadersMax = 256;

const malformed: Failure = {
  reason: "malformed_response",
  problem: "sent a response that is not valid HTTP",
  hint: `A response has a status line, at most ${clientHeadersMax} headers, and no control character in their names and values.`,
};

const closed: Failure = {
  reason: "closed",
  problem: "closed the connection without a response",
  hint: "Its log may say why.",
};

const refusedUpgrade: Failure = {
  reason: "no_websocket",
  problem: "did not accept the WebSocket",
  hint: "It must answer this path with 101, Switching Protocols.",
};

const silent: Failure = {
  reason: "no_response",
  problem: "did not respond to the request for a WebSocket in time",
  hint: "Check that it is running and that it answers inside the sandbox.",
};

const tooManyBytes: Failure = {
  reason: "headers_too_large",
  problem: `sent more than ${limits.portResponseHeaderBytesMax} bytes of headers`,
  hint: "Send long values in the body.",
};

const failures: Record<string, Failure> = {
  Malformed_HTTP_Response: malformed,
  HPE_INVALID_CONSTANT: malformed,
  UnsupportedTransferEncoding: malformed,
  InvalidContentLength: malformed,
  ECONNRESET: closed,
};

/** `thrown`: by the client. */
export function requestFailure(port: number, thrown: unknown): BerthError {
  if (thrown instanceof BerthError) return thrown;
  const { code } = (thrown ?? {}) as { code?: unknown };
  const failure = typeof code === "string" ? failures[code] : undefined;
  return failure === undefined ? noServer(port) : portFailure(port, failure);
}

/** `end`: how the handshake ended. */
export function socketFailure(port: number, end: HandshakeEnd): BerthError {
  if (end === "timeout") return portFailure(port, silent);
  return end.code === undefined ? portFailure(port, refusedUpgrade) : requestFailure(port, end);
}

/** The server's own refusal has no code. */
export type HandshakeEnd = "timeout" | { code: string | undefined };

/** Refuses a response with more headers than the way to the caller carries. */
export function checkResponseHeaders(port: number, { headers, body }: Response): void {
  let bytes = 0;
  for (const [name, value] of headers) bytes += name.length + value.length;
  if (bytes <= limits.portResponseHeaderBytesMax) return;
  body?.cancel().catch(() => {});
  throw portFailure(port, tooManyBytes);
}

function portFailure(port: number, { reason, problem, hint }: Failure): BerthError {
  const message = `The server on port ${port} ${problem}.`;
  return new BerthError("port_unreachable", message, { hint, facts: { port, reason } });
}

function noServer(port: number): BerthError {
  return new BerthError("port_unreachable", `Nothing in the sandbox answers on port ${port}.`, {
    hint: `Start a server that listens on 127.0.0.1:${port} or 0.0.0.0:${port}.`,
    facts: { port, reason: "no_server" },
  });
}
