/**
 * Messages of the channel between a Sandbox object and its agent: a WebSocket that carries short commands without an
 * HTTP request for each. A message is a JSON head, a line break and a JSON body. The agent loads this file too.
 */

/** The object chooses the id; it is unique among the calls in progress. */
export type ChannelCall = {
  id: string;
  path: string;
  fence: number;
  requestId: string;
  body: string;
};

export type ChannelResult = { id: string; status: number; json: string };

/** Instead of a status: the result is slow or large, and must be requested from `agentPaths.deferred`. */
export const deferredStatus = 102;

/** Text that a header can carry, because the agent turns the id into one. */
const headerText = /^[\x20-\x7e]*$/;

export function writeCall({ id, path, fence, requestId, body }: ChannelCall): string {
  return `${JSON.stringify([id, path, fence, requestId])}\n${body}`;
}

/** Undefined for a malformed message. */
export function readCall(message: unknown): ChannelCall | undefined {
  const { head, body } = splitMessage(message);
  const [id, path, fence, requestId] = head;
  if (typeof id !== "string" || typeof path !== "string") return undefined;
  if (!isFence(fence) || typeof requestId !== "string") return undefined;
  if (!headerText.test(requestId)) return undefined;
  return { id, path, fence, requestId, body };
}

export function writeResult({ id, status, json }: ChannelResult): string {
  return `${JSON.stringify([id, status])}\n${json}`;
}

/** Undefined for a malformed message. */
export function readResult(message: unknown): ChannelResult | undefined {
  const { head, body } = splitMessage(message);
  const [id, status] = head;
  if (typeof id !== "string" || !isResultStatus(status)) return undefined;
  return { id, status, json: body };
}

function isFence(fence: unknown): fence is number {
  return Number.isSafeInteger(fence) && (fence as number) >= 0;
}

/** The statuses of a complete result. */
function isResultStatus(status: unknown): status is number {
  if (!Number.isInteger(status)) return false;
  const number = status as number;
  return number === deferredStatus || number === 200 || (number >= 400 && number < 600);
}

function splitMessage(message: unknown): { head: unknown[]; body: string } {
  const none = { head: [], body: "" };
  if (typeof message !== "string") return none;
  const end = message.indexOf("\n");
  if (end < 0) return none;
  try {
    const head: unknown = JSON.parse(message.slice(0, end));
    return Array.isArray(head) ? { head, body: message.slice(end + 1) } : none;
  } catch {
    return none;
  }
}
