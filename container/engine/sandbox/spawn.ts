/**
 * Owns one agent as a process: `unshare` around it, its document, its ready line, its last words, its end.
 * Does not own folders, groups or networks (life.ts), nor what an end means.
 */

import { roomUser } from "../jail/identity.ts";
import { type AgentReady, agentReadySchema, type RoomDocument } from "../jail/jail-spec.ts";
import { oneThread } from "../jail/runtime.ts";
import { childrenOf, nameOf, type ProcessName, sendSignal } from "../processes.ts";
import { withDocument } from "./boot-document.ts";

export type SpawnedAgent = {
  /** The outer process, which ends when the last process of the sandbox has. */
  outer: ProcessName;
  ready: Promise<AgentReady>;
  exited: Promise<{ exitCode: number | null; signal: string | null }>;
  /** The first process of the sandbox, as the machine numbers it. */
  agent(): ProcessName | undefined;
  lastWords(): string;
  /** Never written to. While it is open the agent knows that the engine lives; held, so that it stays open. */
  lifeline: unknown;
  kill(): void;
};

const lastWordsCharactersMax = 4096;
const readyLineCharactersMax = 4096;

/**
 * Of the agent, never of commands. Bun looks for garbage once a second, and each 30 s once a process has
 * been quiet for long: the former, in hundreds of them that were just started, is a sixth of a core.
 */
const agentEnvironment = { ...oneThread, BUN_GC_TIMER_INTERVAL: "30000" };

export function spawnAgent(binary: string, document: RoomDocument): SpawnedAgent {
  const child = withDocument(document, (fd) =>
    Bun.spawn(["unshare", ...namespaces(document.room.user), "--", binary, "room"], {
      cwd: "/",
      env: agentEnvironment,
      // The end of stdin tells the agent that the engine is gone.
      stdio: ["pipe", "pipe", "pipe", fd],
    }),
  );
  const outer = nameOf(child.pid) ?? { pid: child.pid, start: "" };
  const tail = keepTail(child.stderr);
  const agent = () => {
    const [pid] = childrenOf(outer.pid);
    return pid === undefined ? undefined : nameOf(pid);
  };
  return {
    outer,
    ready: readReady(child.stdout),
    exited: Promise.all([child.exited, tail.end]).then(() =>
      endOf(child.exitCode, child.signalCode, tail.text()),
    ),
    agent,
    lastWords: tail.text,
    lifeline: child.stdin,
    // The agent, not `unshare`: that one then waits for it, so its end means that all have ended.
    kill: () => sendSignal(agent() ?? outer, "SIGKILL"),
  };
}

function namespaces(user: "own" | "mapped"): string[] {
  const all = ["--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child=SIGKILL"];
  if (user === "own") return all;
  // As the same number that commands have elsewhere; the right to mount comes along until it is given up.
  const { uid, gid } = roomUser;
  return ["--user", `--map-user=${uid}`, `--map-group=${gid}`, "--keep-caps", ...all];
}

function readReady(stdout: ReadableStream<Uint8Array>): Promise<AgentReady> {
  const { promise, resolve, reject } = Promise.withResolvers<AgentReady>();
  const read = async () => {
    const decoder = new TextDecoder();
    let line = "";
    // What follows the line is read and dropped: a full pipe would stop the agent.
    for await (const chunk of stdout) {
      if (line.includes("\n")) continue;
      line += decoder.decode(chunk, { stream: true });
      if (line.includes("\n")) resolve(agentReadySchema.parse(JSON.parse(line)));
      if (line.length > readyLineCharactersMax)
        throw new Error("the agent's first line is too long");
    }
    throw new Error("the agent ended before it was ready");
  };
  read().catch(reject);
  // A start may fail before it waits for this; with nobody to hear it, it would end the engine and every sandbox.
  promise.catch(() => undefined);
  return promise;
}

/**
 * `unshare` ends as the agent did, but for SIGKILL: that it cannot raise on itself the way it tries to, which
 * it says on stderr before it exits with 1.
 */
function endOf(exitCode: number | null, signal: NodeJS.Signals | number | null, lastWords: string) {
  if (exitCode === 1 && /^unshare: /m.test(lastWords)) return { exitCode: null, signal: "SIGKILL" };
  return { exitCode, signal: typeof signal === "number" ? `signal ${signal}` : signal };
}

function keepTail(stream: ReadableStream<Uint8Array>): { text: () => string; end: Promise<void> } {
  const decoder = new TextDecoder();
  let tail = "";
  const keep = async () => {
    for await (const chunk of stream) {
      tail = (tail + decoder.decode(chunk, { stream: true })).slice(-lastWordsCharactersMax);
    }
  };
  return { text: () => tail.trim(), end: keep() };
}
