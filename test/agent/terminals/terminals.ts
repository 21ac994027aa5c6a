/** Calls the terminal routes of a real agent in tests, and counts the PTYs that it has open. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { afterEach, expect } from "vitest";
import {
  type Terminal,
  type TerminalInput,
  terminalSchema,
  terminalsSchema,
} from "../../../src/protocol/terminal.ts";
import { Agent, type Kind } from "../agent.ts";

/** An agent for the calling block. After each test its terminals are ended, and nothing of them may be left. */
export function terminalAgent(tree: Kind): Agent {
  const agent = Agent.forBlock({ tree });
  afterEach(async () => {
    for (const { id } of await listTerminals(agent)) await endTerminal(agent, id);
    expect(livePtys(agent)).toBe(0);
    expect(agent.left()).toEqual([]);
  });
  return agent;
}

export function postTerminal(
  agent: Agent,
  call: TerminalInput | Record<string, unknown>,
  headers: Record<string, string> = {},
): Promise<Response> {
  const body = JSON.stringify(call);
  return agent.request("/v1/terminals", { method: "POST", body, headers });
}

export async function openTerminal(
  agent: Agent,
  call: TerminalInput & { id: string },
): Promise<Terminal> {
  const response = await postTerminal(agent, call);
  const text = await response.text();
  expect(response.status, text).toBe(201);
  return terminalSchema.parse(JSON.parse(text));
}

/** Runs the command in a shell without prompts, echo or history. */
export function script(command: string): string[] {
  return ["bash", "--norc", "--noprofile", "-c", command];
}

export async function endTerminal(agent: Agent, id: string): Promise<number> {
  return (await agent.request(`/v1/terminals/${id}`, { method: "DELETE" })).status;
}

export async function terminalNow(agent: Agent, id: string): Promise<Terminal> {
  const response = await agent.request(`/v1/terminals/${id}`);
  expect(response.status).toBe(200);
  return terminalSchema.parse(await response.json());
}

export async function isGone(agent: Agent, id: string): Promise<boolean> {
  return (await agent.request(`/v1/terminals/${id}`)).status === 404;
}

export async function listTerminals(agent: Agent): Promise<Terminal[]> {
  const response = await agent.request("/v1/terminals");
  expect(response.status).toBe(200);
  return terminalsSchema.parse(await response.json()).terminals;
}

/** Counts the masters that the agent has open; two descriptors of one count once. */
export function livePtys(agent: Agent): number {
  const numbers = new Set<string>();
  for (const fd of readdirSync(`/proc/${agent.pid}/fd`)) {
    try {
      if (!/ptmx$/.test(readlinkSync(`/proc/${agent.pid}/fd/${fd}`))) continue;
      const info = readFileSync(`/proc/${agent.pid}/fdinfo/${fd}`, "utf8");
      numbers.add(/tty-index:\s*(\d+)/.exec(info)?.[1] ?? fd);
    } catch {
      // Closed in the meantime.
    }
  }
  return numbers.size;
}
