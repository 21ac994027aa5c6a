/**
 * Owns the messages of the line between a Sandbox object and its agent: a WebSocket by which commands go without a request
 * for each. A message is a head in JSON, a line break, and a body in JSON. The agent takes this file too.
 * Does not own what is called: paths and bodies are those of the requests (agent-wire.ts).
 */

/** The id is the caller's, and of one call alone while that is under way. */
export type ChannelCall = {
  id: string;
  path: string;
  fence: number;
  requestId: string;
  body: string;
};

export type ChannelResult = { id: string; status: number; json: string };

/** In place of a status: the answer takes longer, or is longer, and is to be asked for by a request (`agentPaths.later`). */
export const deferredStatus = 102;

/** What a header carries unchanged: the agent makes one of it. */
const headerText = /^[\x20-\x7e]*$/;

export function writeCall({ id, path, fence, requestId, body }: ChannelCall): string {
  return `${JSON.stringify([id, path, fence, requestId])}\n${body}`;
}

/** Undefined: it is none. */
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

/** Undefined: it is none. */
export function readResult(message: unknown): ChannelResult | undefined {
  const { head, body } = splitMessage(message);
  const [id, status] = head;
  if (typeof id !== "string" || !isResultStatus(status)) return undefined;
  return { id, status, json: body };
}

function isFence(fence: unknown): fence is number {
  return Number.isSafeInteger(fence) && (fence as number) >= 0;
}

/** Those of an answer that is whole. */
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
