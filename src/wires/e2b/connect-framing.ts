/**
 * The framing of the Connect protocol: a row of envelopes, each of one byte of flags, four bytes of length (big-endian) and
 * JSON. The last envelope of a stream has the flag 2 and carries the error, if there was one.
 */

/** The numeric status of each code, for calls that are no stream. */
export const connectStatus = {
  canceled: 499,
  unknown: 500,
  invalid_argument: 400,
  deadline_exceeded: 504,
  not_found: 404,
  already_exists: 409,
  permission_denied: 403,
  resource_exhausted: 429,
  failed_precondition: 400,
  aborted: 409,
  unimplemented: 501,
  internal: 500,
  unavailable: 503,
  unauthenticated: 401,
} as const;

export type ConnectCode = keyof typeof connectStatus;

export class ConnectError extends Error {
  readonly code: ConnectCode;

  constructor(code: ConnectCode, message: string) {
    super(message);
    this.code = code;
  }
}

const headBytes = 5;
const flags = { message: 0, compressed: 1, end: 2 } as const;
const utf8 = new TextEncoder();

export function encodeMessage(message: unknown): Uint8Array {
  return encodeEnvelope(flags.message, message);
}

/** Without an error the stream has ended well. */
export function encodeEnd(error?: ConnectError): Uint8Array {
  const { code, message } = error ?? {};
  return encodeEnvelope(flags.end, error === undefined ? {} : { error: { code, message } });
}

function encodeEnvelope(flag: number, message: unknown): Uint8Array {
  const json = utf8.encode(JSON.stringify(message));
  const envelope = new Uint8Array(headBytes + json.length);
  envelope[0] = flag;
  new DataView(envelope.buffer).setUint32(1, json.length);
  envelope.set(json, headBytes);
  return envelope;
}

/** Reads the one envelope of a request. Throws a ConnectError for anything else. */
export function decodeRequest(bytes: Uint8Array): unknown {
  if (bytes.length < headBytes) {
    throw new ConnectError("invalid_argument", "the request has no complete envelope");
  }
  const [flag] = bytes;
  if (flag === flags.compressed) {
    throw new ConnectError("unimplemented", "compressed envelopes are not supported");
  }
  if (flag !== flags.message) {
    throw new ConnectError("invalid_argument", `the envelope has the unknown flags ${flag}`);
  }
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(1);
  if (bytes.length !== headBytes + length) {
    const have = bytes.length - headBytes;
    throw new ConnectError("invalid_argument", `the envelope has ${have} of ${length} bytes`);
  }
  return parseObject(bytes.subarray(headBytes));
}

export function parseObject(bytes: Uint8Array): Record<string, unknown> {
  let value: unknown;
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes);
    value = text === "" ? {} : JSON.parse(text);
  } catch {
    throw new ConnectError("invalid_argument", "the message is not JSON in UTF-8");
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw new ConnectError("invalid_argument", "the message is not an object");
}
