/** Responds to requests like an agent: checks the caller and finds the route. */
import { BerthError } from "../../../src/protocol/errors.ts";
import type {
  AgentExecCall,
  AgentFence,
  AgentFreeze,
  AgentMetadata,
  AgentRevoked,
  AgentSettings,
} from "../../../src/protocol/internal/agent.ts";
import { agentHeaders, agentPaths } from "../../../src/protocol/internal/agent.ts";
import type { FakeAgent } from "./agent.ts";
import { answerArchive } from "./archives.ts";
import { AgentCall, noRoute } from "./call.ts";
import type { FakeChannel } from "./channel.ts";
import { exec } from "./command.ts";
import { answerGit } from "./git.ts";

/** The agent's channel, and the handler of requests that arrive over it. */
export type ChannelDeps = {
  channel: FakeChannel;
  respond: (request: Request) => Promise<Response>;
};

export async function respondAsAgent(
  agent: FakeAgent,
  request: Request,
  channelDeps?: ChannelDeps,
): Promise<Response> {
  const call = new AgentCall(agent, request);
  try {
    admit(agent, request.headers);
    const answer = await route(agent, call, channelDeps);
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
  const requestedIncarnation = headers.get(agentHeaders.incarnation);
  if (requestedIncarnation !== null && requestedIncarnation !== agent.incarnation) {
    throw new BerthError("stale_handle", "This is another life.");
  }
}

async function route(
  agent: FakeAgent,
  call: AgentCall,
  channelDeps?: ChannelDeps,
): Promise<Response> {
  switch (call.url.pathname.split("/").slice(0, 3).join("/")) {
    case agentPaths.health:
      return call.json(health(agent));
    case agentPaths.freeze:
      agent.isFrozen = (await call.body<AgentFreeze>()).forMs > 0;
      return call.json({ stopped: 0 });
    case agentPaths.fence:
      return call.json(await agent.raiseFence(await call.body<AgentFence>()));
    case agentPaths.metadata: {
      const metadata = await call.body<AgentMetadata>();
      if (metadata.version > agent.metadata.version) agent.metadata = metadata;
      return call.json({ version: agent.metadata.version });
    }
    case agentPaths.services: {
      if (call.request.method === "GET") return call.json(agent.services(call.rest[0]));
      const settings = await call.body<AgentSettings>();
      agent.applySettings(settings);
      return call.json({ version: settings.version });
    }
    case agentPaths.metrics:
      return call.json(agent.metrics(Number(call.query.get("last"))));
    case agentPaths.revoked:
      agent.revoke(await call.body<AgentRevoked>());
      return call.json({ generation: agent.generation });
    case agentPaths.exec: {
      const execCall = await call.body<AgentExecCall>();
      call.admitFence();
      return call.text((await exec(agent, execCall)).body);
    }
    case agentPaths.execs:
      return call.text((await agent.storedResults.get(call.rest[0] ?? "")).body);
    case agentPaths.cancel: {
      const running = agent.running.get(call.rest[0] ?? "");
      running?.stop.now("cancelled");
      return call.json({ known: running !== undefined });
    }
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
      return forwardToPort(agent, call);
    case agentPaths.work:
      return call.json(work(agent, Number(call.query.get("after") ?? 0)));
    case agentPaths.channel:
      if (channelDeps === undefined) break;
      return channelDeps.channel.open(agent, call, channelDeps.respond);
    case agentPaths.deferred:
      if (channelDeps === undefined) break;
      return channelDeps.channel.fetchDeferred(call.rest[0] ?? "");
  }
  throw noRoute();
}

async function forwardToPort(agent: FakeAgent, call: AgentCall): Promise<Response> {
  const [port = "", ...path] = call.rest;
  const server = agent.servers.get(Number(port));
  if (server === undefined) {
    throw new BerthError("port_unreachable", `Nothing answers on port ${port}.`, {
      hint: "Start a server on it.",
    });
  }
  const target = `http://127.0.0.1/${path.join("/")}${call.url.search}`;
  const answer = await server(new Request(target, call.request));
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
    endings: agent.exits.filter(({ n }) => n > after),
  };
}
