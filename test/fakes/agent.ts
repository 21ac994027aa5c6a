/**
 * Owns an agent in memory: it answers health and exec as the real one does, for a handful of commands.
 * Runs in Node and in workerd.
 */

import type { AgentExecCall, AgentFence, AgentMetadata } from "../../src/protocol/agent.ts";
import { agentHeaders, agentPaths, agentProtocol } from "../../src/protocol/agent.ts";
import { BerthError, errorBody, errors } from "../../src/protocol/errors.ts";

export type FakeAgent = {
  startId: string;
  incarnation: string;
  secret: string;
  env: Record<string, string>;
  fence: number;
  ended: boolean;
  metadata: { version: number; metadata: Record<string, string> };
  running: Map<string, { fence: number; kill: (signal: string) => void }>;
  /** Called when a command has ended. */
  watchers: Set<() => void>;
  /** Each command that began, in order. */
  ran: string[];
  servers: Map<number, (request: Request) => Promise<Response>>;
  signal(signal: number): void;
  /** It dies: what runs is cut off without an answer. */
  end(): void;
};

type Outcome = { exitCode: number | null; signal: string | null; stdout: string; stderr: string };

export function newAgent(options: {
  startId: string;
  secret: string;
  env: Record<string, string>;
}): FakeAgent {
  const running: FakeAgent["running"] = new Map();
  const random = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    (byte % 36).toString(36),
  );
  const killAll = (signal: string) => {
    for (const { kill } of running.values()) kill(signal);
  };
  return {
    ...options,
    incarnation: `${options.startId}.${random.join("")}`,
    fence: 0,
    metadata: { version: 0, metadata: {} },
    watchers: new Set(),
    running,
    ended: false,
    ran: [],
    servers: new Map(),
    signal: (signal) => killAll(signal === 15 ? "SIGTERM" : "SIGKILL"),
    end() {
      this.ended = true;
      killAll("cut");
    },
  };
}

export async function answerAsAgent(agent: FakeAgent, request: Request): Promise<Response> {
  const requestId = request.headers.get(agentHeaders.requestId) ?? "none";
  const headers = {
    [agentHeaders.incarnation]: agent.incarnation,
    [agentHeaders.protocol]: String(agentProtocol),
  };
  const refuse = (error: BerthError) => {
    const body = JSON.stringify(errorBody(error, requestId));
    return new Response(body, { status: errors[error.code].status, headers: whole(headers, body) });
  };
  if (request.headers.get("authorization") !== `Bearer ${agent.secret}`) {
    return refuse(new BerthError("unauthenticated", "The secret is wrong."));
  }
  const named = request.headers.get(agentHeaders.incarnation);
  if (named !== null && named !== agent.incarnation) {
    return refuse(new BerthError("stale_handle", "This is another life."));
  }
  const path = new URL(request.url).pathname;
  if (path === agentPaths.health) {
    const { fence, running, incarnation } = agent;
    const health = {
      incarnation,
      protocol: agentProtocol,
      tree: "cgroup",
      running: running.size,
      fence,
    };
    return Response.json(health, { headers });
  }
  if (path === agentPaths.fence) {
    return Response.json(await raise(agent, (await request.json()) as AgentFence), { headers });
  }
  if (path === agentPaths.metadata) {
    const told = (await request.json()) as AgentMetadata;
    if (told.version > agent.metadata.version) agent.metadata = told;
    return Response.json({ version: agent.metadata.version }, { headers });
  }
  if (path !== agentPaths.exec) return refuse(new BerthError("not_found", "No such route."));
  const call = (await request.json()) as AgentExecCall;
  // In the same piece in which the command begins: nothing can raise the fence in between.
  const fence = Number(request.headers.get(agentHeaders.fence));
  if (fence < agent.fence) {
    return refuse(new BerthError("stale_fence", "The fence is an old one."));
  }
  agent.fence = fence;
  try {
    return await exec(agent, call, fence, headers);
  } catch (error) {
    if (error instanceof BerthError) return refuse(error);
    throw error;
  }
}

/** From now on nothing below begins; with `drain` it also ends. */
async function raise(agent: FakeAgent, call: AgentFence): Promise<{ fence: number; left: number }> {
  agent.fence = Math.max(agent.fence, call.fence);
  const below = () => [...agent.running.values()].filter(({ fence }) => fence < call.fence);
  if (call.drain) for (const { kill } of below()) kill("fenced");
  const until = Date.now() + call.waitMs;
  while (below().length > 0 && Date.now() < until && !agent.ended) {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, until - Date.now());
      agent.watchers.add(() => {
        clearTimeout(timer);
        resolve();
      });
    });
    agent.watchers.clear();
  }
  if (agent.ended) throw new TypeError("connection reset");
  return { fence: agent.fence, left: below().length };
}

async function exec(
  agent: FakeAgent,
  call: AgentExecCall,
  fence: number,
  headers: Record<string, string>,
): Promise<Response> {
  const began = Date.now();
  const [program = "", ...args] = call.argv ?? (call.command ?? "").split(" ");
  agent.ran.push([program, ...args].join(" "));
  const outcome = agent.ended ? "cut" : await run(agent, call, fence, program, args);
  for (const watcher of agent.watchers) watcher();
  if (outcome === "fenced") {
    throw new BerthError("operation_interrupted", "The lease of this command was lost.", {
      facts: { admitted: true, reason: "lease_lost" },
    });
  }
  if (outcome === "cut") throw new TypeError("connection reset");
  const result = {
    execId: call.execId,
    ...outcome,
    timedOut: outcome.signal === "timeout",
    ...(outcome.signal === "timeout" ? { signal: "SIGTERM" } : {}),
    truncated: false,
    leftovers: 0,
    durationMs: Date.now() - began,
    incarnation: agent.incarnation,
  };
  const body = JSON.stringify(result);
  return new Response(body, { headers: whole(headers, body) });
}

async function run(
  agent: FakeAgent,
  call: AgentExecCall,
  fence: number,
  program: string,
  args: string[],
): Promise<Outcome | "cut" | "fenced"> {
  const done = (exitCode: number, stdout = "", stderr = "") => ({
    exitCode,
    signal: null,
    stdout,
    stderr,
  });
  if (program === "true") return done(0);
  if (program === "false") return done(1);
  if (program === "exit") return done(Number(args[0]));
  if (program === "echo") return done(0, `${args.join(" ")}\n`);
  if (program === "printenv") {
    const value = { ...agent.env, ...call.env }[args[0] ?? ""];
    return value === undefined ? done(1) : done(0, `${value}\n`);
  }
  if (program === "pwd") return done(0, `${call.cwd ?? "/workspace"}\n`);
  if (program === "cat") return done(0, call.stdin ?? "");
  if (program === "sleep") return sleep(agent, call, fence, Number(args[0]) * 1000);
  return done(127, "", `${program}: not found\n`);
}

function sleep(
  agent: FakeAgent,
  call: AgentExecCall,
  fence: number,
  ms: number,
): Promise<Outcome | "cut" | "fenced"> {
  return new Promise((resolve) => {
    const finish = (outcome: Outcome | "cut" | "fenced") => {
      clearTimeout(timer);
      clearTimeout(limit);
      agent.running.delete(call.execId);
      resolve(outcome);
    };
    const ended = (signal: string | null) => ({
      exitCode: signal === null ? 0 : null,
      signal,
      stdout: "",
      stderr: "",
    });
    const timer = setTimeout(() => finish(ended(null)), ms);
    const limit = setTimeout(() => finish(ended("timeout")), call.timeoutMs);
    agent.running.set(call.execId, {
      fence,
      kill: (signal) => finish(signal === "cut" || signal === "fenced" ? signal : ended(signal)),
    });
  });
}

/** The real agent names the length of every answer that it has whole. */
function whole(headers: Record<string, string>, body: string): Record<string, string> {
  const length = String(new TextEncoder().encode(body).length);
  return { ...headers, "content-type": "application/json", "content-length": length };
}
