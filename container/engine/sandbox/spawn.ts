/** Spawns one agent inside `unshare` and follows its ready line, its last output on stderr and its exit. */
import { dlopen, FFIType, ptr } from "bun:ffi";
import { closeSync, writeSync } from "node:fs";
import { singleThreadedBun } from "../jail/bun-options.ts";
import { jailUser } from "../jail/identity.ts";
import {
  type AgentReady,
  agentReadySchema,
  type JailDocument,
  type JailUser,
} from "../jail/jail-spec.ts";
import { childrenOf, identifyProcess, sendSignal } from "../processes.ts";

export type SpawnedAgent = ReturnType<typeof spawnAgent>;

const lastWordsCharactersMax = 4096;
const readyLineCharactersMax = 4096;

/**
 * The environment of the agent, not of commands. Bun's idle garbage collection timer runs every second, and only
 * every 30 s once a process has been idle for long; in hundreds of new agents the former costs a sixth of a core.
 */
const agentEnvironment = { ...singleThreadedBun, BUN_GC_TIMER_INTERVAL: "30000" };

/** `rangeLock`: the lock of the sandbox's ids, which the agent keeps from here on. */
export function spawnAgent(binary: string, document: JailDocument, rangeLock?: number) {
  const child = withDocument(document, (fd) =>
    Bun.spawn(["unshare", ...namespaces(document.jail.user.kind), "--", binary, "jail"], {
      cwd: "/",
      env: agentEnvironment,
      // The agent takes the end of its stdin as the end of the engine.
      stdio: ["pipe", "pipe", "pipe", fd, ...(rangeLock === undefined ? [] : [rangeLock])],
    }),
  );
  const outer = identifyProcess(child.pid) ?? { pid: child.pid, start: "" };
  const tail = keepTail(child.stderr);
  /** The first process of the sandbox, with its PID on the machine. */
  const agent = () => {
    const [pid] = childrenOf(outer.pid);
    return pid === undefined ? undefined : identifyProcess(pid);
  };
  return {
    /** The outer process (`unshare`), which ends after the last process of the sandbox. */
    outer,
    ready: readReady(child.stdout),
    exited: Promise.all([child.exited, tail.end]).then(() =>
      endOf(child.exitCode, child.signalCode, tail.text()),
    ),
    agent,
    lastWords: tail.text,
    /** The agent's stdin, referenced so that it stays open: the agent ends when it closes. */
    lifeline: child.stdin,
    // Kills the agent, not `unshare`, which waits for it: so the end of `unshare` means that all have ended.
    kill: () => void sendSignal(agent() ?? outer, "SIGKILL"),
  };
}

function namespaces(user: JailUser["kind"]): string[] {
  const all = ["--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child=SIGKILL"];
  if (user !== "mapped") return all;
  // Maps to the same UID that commands have elsewhere; the capability to mount is kept until the agent drops it.
  const { uid, gid } = jailUser;
  return ["--user", `--map-user=${uid}`, `--map-group=${gid}`, "--keep-caps", ...all];
}

function readReady(stdout: ReadableStream<Uint8Array>): Promise<AgentReady> {
  const { promise, resolve, reject } = Promise.withResolvers<AgentReady>();
  const read = async () => {
    const decoder = new TextDecoder();
    let line = "";
    // Reads and discards what follows the line: a full pipe would block the agent.
    for await (const chunk of stdout) {
      if (line.includes("\n")) continue;
      line += decoder.decode(chunk, { stream: true });
      if (line.includes("\n")) resolve(agentReadySchema.parse(JSON.parse(line)));
      if (line.length > readyLineCharactersMax)
        throw new Error("the first line of the agent is too long");
    }
    throw new Error("the agent ended before it was ready");
  };
  read().catch(reject);
  // A start may fail before it awaits this promise; an unhandled rejection would end the engine and every sandbox.
  promise.catch(() => undefined);
  return promise;
}

/**
 * `unshare` exits as its agent did, except for SIGKILL: it fails to raise that on itself, prints so on stderr and
 * exits with 1.
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

const libc = dlopen("libc.so.6", {
  memfd_create: { args: [FFIType.ptr, FFIType.u32], returns: FFIType.i32 },
}).symbols;

const closeOnExec = 1;
const documentName = Buffer.from("berth-boot\0");

/**
 * Calls `use` with a descriptor positioned at the start of the document and closes it afterwards. The document is in
 * anonymous memory: it holds the secret, which must never be in a file, an argument or an environment.
 */
function withDocument<T>(document: unknown, use: (fd: number) => T): T {
  const fd = libc.memfd_create(ptr(documentName), closeOnExec);
  if (fd < 0) throw new Error("memfd_create failed: no memory or no descriptor is left.");
  try {
    const bytes = Buffer.from(JSON.stringify(document));
    for (let offset = 0; offset < bytes.length; ) {
      offset += writeSync(fd, bytes, offset, bytes.length - offset, offset);
    }
    return use(fd);
  } finally {
    closeSync(fd);
  }
}
