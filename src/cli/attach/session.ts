/**
 * Owns a person's time at a remote terminal: keys there, output here, sizes, and leaving by the detach key.
 * Does not own the person's terminal (local-terminal.ts), nor the connection (the SDK's LiveTerminal).
 */
import type { LiveTerminal } from "../../client/index.ts";
import type { LocalTerminal } from "./local-terminal.ts";

export type SessionEnd =
  | { by: "exit"; exitCode: number | null; signal: string | null }
  | { by: "detached" }
  /** The signal that was given: an interrupt, or the loss of what it runs under. */
  | { by: "aborted"; reason: unknown };

export const detachKey = 0x1c;
export const detachWords = "Ctrl-\\";

type Options = {
  signal: AbortSignal;
  detaches: boolean;
  /** How much of the output's beginning is not shown; once it has come, `starts` is sent, and then what is typed. */
  skip?: number;
  starts?: string;
};

export async function session(
  live: LiveTerminal,
  local: LocalTerminal,
  { signal, detaches, skip = 0, starts = "" }: Options,
): Promise<SessionEnd> {
  let left = skip;
  const early: Uint8Array[] = [];
  let end: SessionEnd | undefined;
  const finish = (with_: SessionEnd) => {
    end ??= with_;
    live.close();
  };
  const abort = () => finish({ by: "aborted", reason: signal.reason });
  signal.addEventListener("abort", abort);
  if (signal.aborted) abort();
  const typed = (bytes: Uint8Array) => {
    const at = detaches ? bytes.indexOf(detachKey) : -1;
    const meant = at < 0 ? bytes : bytes.subarray(0, at);
    if (left > 0) early.push(meant);
    else live.write(meant);
    if (at >= 0) finish({ by: "detached" });
  };
  local.take(typed, (size) => live.resize(size));
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
      else if (event.type === "refused") local.say(`[${event.message}]`);
      else if (event.type === "connection" && event.state === "lost") {
        local.say("[connection lost; trying again]");
      } else if (event.type === "connection") local.say("[connected again]");
      else if (event.type === "exit") {
        end ??= { by: "exit", exitCode: event.exitCode, signal: event.signal };
      }
    }
  } finally {
    signal.removeEventListener("abort", abort);
    local.restore();
  }
  if (end === undefined) throw new Error("the terminal was closed by nobody");
  return end;
}
