/** Connects the user's terminal to a remote one: keys, output, sizes, and the detach key. */
import type { LiveTerminal } from "../../client/index.ts";
import type { LocalTerminal } from "./local-terminal.ts";

export type SessionEnd =
  | { by: "exit"; exitCode: number | null; signal: string | null }
  | { by: "detached" }
  /** The given signal aborted: an interrupt, or the loss of the lease. */
  | { by: "aborted"; reason: unknown };

const detachKey = 0x1c;
export const detachWords = "Ctrl-\\";

type SessionOptions = {
  signal: AbortSignal;
  detaches: boolean;
  /** How many bytes of the first output to hide; once they have arrived, `starts` is sent, then what was typed. */
  skip?: number;
  starts?: string;
};

export async function runSession(
  live: LiveTerminal,
  local: LocalTerminal,
  { signal, detaches, skip = 0, starts = "" }: SessionOptions,
): Promise<SessionEnd> {
  let left = skip;
  const early: Uint8Array[] = [];
  let end: SessionEnd | undefined;
  const finish = (newEnd: SessionEnd) => {
    end ??= newEnd;
    live.close();
  };
  const abort = () => finish({ by: "aborted", reason: signal.reason });
  signal.addEventListener("abort", abort);
  if (signal.aborted) abort();
  const typed = (bytes: Uint8Array) => {
    const detachAt = detaches ? bytes.indexOf(detachKey) : -1;
    const input = detachAt < 0 ? bytes : bytes.subarray(0, detachAt);
    if (left > 0) early.push(input);
    else live.write(input);
    if (detachAt >= 0) finish({ by: "detached" });
  };
  local.start(typed, (size) => live.resize(size));
  live.resize(local.size);
  try {
    for await (const event of live) {
      if (event.type === "output") {
        const hidden = Math.min(left, event.bytes.length);
        left -= hidden;
        if (hidden > 0 && left === 0) {
          live.write(Buffer.concat([Buffer.from(starts), ...early.splice(0)]));
        }
        await local.show(event.bytes.subarray(hidden));
      } else if (event.type === "screen") await local.show(event.bytes);
      else if (event.type === "refused") local.printLine(`[${event.message}]`);
      else if (event.type === "connection" && event.state === "lost") {
        local.printLine("[Connection lost; reconnecting]");
      } else if (event.type === "connection") local.printLine("[Connected again]");
      else if (event.type === "exit") {
        end ??= { by: "exit", exitCode: event.exitCode, signal: event.signal };
      }
    }
  } finally {
    signal.removeEventListener("abort", abort);
    local.restore();
  }
  if (end === undefined) throw new Error("the terminal closed without a reason");
  return end;
}
