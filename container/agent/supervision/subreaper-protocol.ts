/** The protocol between the agent and a subreaper: descriptors, orders to the subreaper, events from it. */
import type { CommandNamespaces } from "../../engine/jail/enter.ts";
import { PipeReader } from "../kernel/pipe.ts";
import type { Launch } from "./process-tree.ts";

/** Descriptors of the subreaper; 0, 1 and 2 belong to the command. */
export const subreaperFd = {
  ...{ orders: 3, events: 4, launch: 5 },
  /** Passed where commands have namespaces of their own. */
  namespaces: { user: 6, mounts: 7, program: 8 },
} as const;

/** One JSON value a line, short enough for a pipe to take it whole. */
export type Order = { order: "signal"; name: NodeJS.Signals } | { order: "end" };

/** Passed in a memory file, because environment and arguments would be the subreaper's own. */
export type SubreaperLaunch = Pick<Launch, "program" | "argv" | "cwd" | "env" | "user"> & {
  emptyInput: boolean;
  namespaces: CommandNamespaces | undefined;
};

/** One JSON value a line. `ended` is the last. */
export type SubreaperEvent =
  | { event: "started"; pid: number }
  | { event: "refused"; code: string }
  | { event: "exited"; exitCode: number | null; signal: string | null }
  | { event: "ended"; leftovers: number };

/** Reads one JSON value a line. */
export function readMessages<Message>(fd: number, take: (message: Message) => void): PipeReader {
  const text = new TextDecoder();
  let rest = "";
  return new PipeReader(fd, (bytes) => {
    const lines = (rest + text.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) take(JSON.parse(line) as Message);
  });
}
