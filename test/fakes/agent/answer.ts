/**
 * Owns how an agent in memory answers: who may ask, and which noun has the route.
 */

import { BerthError } from "../../../src/protocol/errors.ts";
import type {
  AgentExecCall,
  AgentFence,
  AgentMetadata,
  AgentRevoked,
} from "../../../src/protocol/internal/agent.ts";
import { agentHeaders, agentPaths } from "../../../src/protocol/internal/agent.ts";
import type { FakeAgent } from "./agent.ts";
import { answerArchive } from "./archives.ts";
import { Call, noRoute } from "./call.ts";
import { exec } from "./exec.ts";
import { raise } from "./fence.ts";
import { answerGit } from "./git.ts";
import type { FakeLine } from "./line.ts";

/** Its line, and who answers the calls that come by it. */
export type Lined = { line: FakeLine; answered: (request: Request) => Promise<Response> };

export async function answerAsAgent(
  agent: FakeAgent,
  request: Request,
  lined?: Lined,
): Promise<Response> {
  const call = new Call(agent, request);
  try {
    admit(agent, request.headers);
    const answer = await route(agent, call, lined);
    if (agent.ended) throw new TypeError("connection reset");
    return answer;
  } catch (error) {
    if (error instanceof BerthError) return call.refuse(error);
    throw error;
  }
}

function admit(agent: FakeAgent, headers: Headers): void {
  if (headers.get("authorization") !== `Bearer ${agent.secret}`) {
    throw new BerthError("unauthenticated", "The secret is wrong.");
  }
  const named = headers.get(agentHeaders.incarnation);
  if (named !== null && named !== agent.incarnation) {
    throw new BerthError("stale_handle", "This is another life.");
  }
}

async function route(agent: FakeAgent, call: Call, lined?: Lined): Promise<Response> {
  switch (call.url.pathname.split("/").slice(0, 3).join("/")) {
    case agentPaths.health:
      return call.json(health(agent));
    case agentPaths.fence:
      return call.json(await raise(agent, await call.body<AgentFence>()));
    case agentPaths.metadata: {
      const told = await call.body<AgentMetadata>();
      if (told.version > agent.metadata.version) agent.metadata = told;
      return call.json({ version: agent.metadata.version });
    }
    case agentPaths.revoked:
      agent.revoke((await call.body<AgentRevoked>()).generation);
      return call.json({ generation: agent.generation });
    case agentPaths.exec: {
      const asked = await call.body<AgentExecCall>();
      call.pass();
      return call.text((await exec(agent, asked)).body);
    }
    case agentPaths.execs:
      return call.text((await agent.answers.of(call.rest[0] ?? "")).body);
    case agentPaths.processes:
      return agent.processes.answer(call);
    case agentPaths.sessions:
      return agent.sessions.answer(call);
    case agentPaths.terminals:
      return agent.terminals.answer(call);
    case agentPaths.files:
      return agent.files.answer(call);
    case agentPaths.archive:
      return answerArchive(agent, call);
    case agentPaths.git:
      return answerGit(agent, call);
    case agentPaths.ports:
      return atPort(agent, call);
    case agentPaths.work:
      return call.json(work(agent, Number(call.url.searchParams.get("after") ?? 0)));
    case agentPaths.line:
      if (lined === undefined) break;
      return lined.line.open(agent, call, lined.answered);
    case agentPaths.later:
      if (lined === undefined) break;
      return lined.line.take(call.rest[0] ?? "");
  }
  throw noRoute();
}

async function atPort(agent: FakeAgent, call: Call): Promise<Response> {
  const [port = "", ...path] = call.rest;
  const served = agent.servers.get(Number(port));
  if (served === undefined) {
    throw new BerthError("port_unreachable", `Nothing answers on port ${port}.`, {
      hint: "Start a server on it.",
    });
  }
  const target = `http://127.0.0.1/${path.join("/")}${call.url.search}`;
  const answer = await served(new Request(target, call.request));
  for (const [name, value] of Object.entries(call.headers)) answer.headers.set(name, value);
  return answer;
}

function health({ fence, running, incarnation, protocol }: FakeAgent) {
  return { incarnation, protocol, tree: "cgroup", running: running.size, fence };
}

function work(agent: FakeAgent, after: number) {
  return {
    execs: agent.running.size,
    processes: agent.processes.count,
    sessions: agent.sessions.count,
    terminals: agent.terminals.count,
    attached: agent.terminals.attached,
    idleMs: agent.idleMs,
    endings: agent.endings.filter(({ n }) => n > after),
  };
}
