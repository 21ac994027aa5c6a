/**
 * Reads a JSON response: its content or its error, with a limit on bytes and on idle time.
 */
import type { BerthError } from "../../protocol/error-codes.ts";
import type { AttemptTimeout } from "./attempt-timeout.ts";
import { foreignResponse, isErrorBody, type SentRequest, toBerthError } from "./failure.ts";
import { rejectOnAbort } from "./timing.ts";

/** What ends the wait for a response, or for more of it. */
export type AttemptLimits = { timeout: AttemptTimeout; signal: AbortSignal };

/** The largest response is a command's output of 16 MiB with each byte escaped. */
const textBytesMax = 128 * 1024 * 1024;

const noContent = 204;

/** The response is an error. A slow call may have sent status 200 before it failed. */
export class ErrorResponse extends Error {
  readonly body: unknown;
  readonly status: number;

  constructor(body: unknown, status: number) {
    super("the response is an error");
    this.body = body;
    this.status = status;
  }

  toError(request: SentRequest): BerthError {
    if (isErrorBody(this.body)) return toBerthError(this.body, this.status);
    return foreignResponse(request, this.status);
  }
}

export async function readContent<Content>(
  response: Response,
  limits: AttemptLimits,
): Promise<Content> {
  const text = await readText(response, limits);
  if (response.status === noContent) return undefined as Content;
  const body = parseJson(text);
  if (body === undefined) {
    // Over a service binding, or behind a proxy, a response that was cut off seems to end normally.
    if (response.headers.has("berth-request-id")) throw new Error("the response ended early");
    throw new ErrorResponse(body, response.status);
  }
  // Content that only contains an error, as an aborted commit does, has no request id.
  if (isErrorBody(body) && typeof body.requestId === "string") throw new ErrorResponse(body, 500);
  return body as Content;
}

export async function readError(
  response: Response,
  limits: AttemptLimits,
  request: SentRequest,
): Promise<BerthError> {
  const body = parseJson(await readText(response, limits));
  return new ErrorResponse(body, response.status).toError(request);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function readText({ body }: Response, { timeout, signal }: AttemptLimits): Promise<string> {
  if (body === null) return "";
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (let bytes = 0; ; ) {
      const { done, value } = await rejectOnAbort(reader.read(), signal);
      if (done) return text + decoder.decode();
      timeout.restart();
      bytes += value.byteLength;
      if (bytes > textBytesMax) throw new Error("the response is longer than any of Berth's");
      text += decoder.decode(value, { stream: true });
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}
