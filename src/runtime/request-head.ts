/** Bounds the address and headers of a request before it is passed on to an agent, whose HTTP server refuses long ones. */
import { BerthError } from "../protocol/errors.ts";
import { limits } from "../protocol/limits.ts";

/** Colon, space and the end of the line of a header. */
const separatorBytes = 4;

/** `path`: with its query. Without a check the agent's refusal would look like that of a lost container. */
export function checkRequestHead(path: string, headers: Iterable<[string, string]>): void {
  const pathBytes = bytesOf(path);
  const bytesMax = limits.passedHeadBytesMax;
  if (pathBytes > bytesMax) throw urlTooLong(pathBytes);
  let headBytes = pathBytes;
  let count = 0;
  for (const [name, value] of headers) {
    headBytes += name.length + bytesOf(value) + separatorBytes;
    count += 1;
  }
  if (count > limits.passedHeadersMax) throw tooManyHeaders(count);
  if (headBytes > bytesMax) throw headersTooLarge(headBytes);
}

function bytesOf(text: string): number {
  return Buffer.byteLength(text);
}

function urlTooLong(bytes: number): BerthError {
  const bytesMax = limits.passedHeadBytesMax;
  return new BerthError(
    "url_too_long",
    `Path and query have ${bytes} bytes; a sandbox takes at most ${bytesMax}.`,
    { hint: "Send long values in the body.", facts: { field: "url", bytesMax } },
  );
}

function tooManyHeaders(count: number): BerthError {
  const { passedHeadersMax: headersMax } = limits;
  return new BerthError(
    "headers_too_large",
    `The request has ${count} headers with Berth's own; a sandbox takes at most ${headersMax}.`,
    { hint: "Send fewer headers.", facts: { field: "headers", headersMax } },
  );
}

function headersTooLarge(bytes: number): BerthError {
  const bytesMax = limits.passedHeadBytesMax;
  return new BerthError(
    "headers_too_large",
    `Headers, path and query have ${bytes} bytes; a sandbox takes at most ${bytesMax}.`,
    {
      hint: "Send shorter headers, such as fewer cookies.",
      facts: { field: "headers", bytesMax },
    },
  );
}
