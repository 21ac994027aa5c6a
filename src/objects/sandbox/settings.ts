/** The calls on the settings: one request makes one commit, and a running agent gets the new environment. */
import { patchSettings, viewSettings } from "../../core/sandbox/settings.ts";
import { BerthError } from "../../protocol/errors.ts";
import { agentPaths } from "../../protocol/internal/agent.ts";
import { hostListError } from "../../protocol/sandbox.ts";
import type { Settings, SettingsPatch } from "../../protocol/settings.ts";
import type { SandboxActor } from "./actor.ts";

export function get(actor: SandboxActor): Settings {
  return viewSettings(actor.facts.sandbox.spec);
}

export async function patch(actor: SandboxActor, change: SettingsPatch): Promise<Settings> {
  actor.refuseIfDestroyed();
  refuseUnsupported(actor, change);
  const { sandbox } = actor.facts;
  const patched = patchSettings(sandbox.spec, change);
  if ("refuse" in patched) throw patched.refuse;
  const { spec, changed } = patched;
  if (changed.length > 0) {
    const event = { type: "settings" as const, version: spec.settingsVersion ?? 0, changed };
    actor.commit({ sandbox: { ...sandbox, spec } }, [event], "settings");
  }
  const atNextStart: ("env" | "network")[] = [];
  // A repeated call sends the environment again: the first one may have ended between the commit and the request.
  if (change.env !== undefined && !(await sendEnvironment(actor))) atNextStart.push("env");
  if (changed.includes("network") && hasContainer(actor)) atNextStart.push("network");
  return { ...get(actor), ...(atNextStart.length > 0 ? { atNextStart } : {}) };
}

function refuseUnsupported(actor: SandboxActor, change: SettingsPatch): void {
  const { filtersHosts, savesFiles } = actor.container;
  const refused = change.network === undefined ? undefined : hostListError(change.network);
  if (refused !== undefined && !filtersHosts) throw refused;
  if (typeof change.checkpointEveryMs === "number" && !savesFiles) {
    const message = "checkpointEveryMs: this installation cannot save file trees.";
    throw new BerthError("unsupported", message, {
      hint: "Leave it out: its containers have no snapshots.",
      facts: { field: "checkpointEveryMs" },
    });
  }
}

/** True if the next command has the environment. An agent of an earlier version gets it with its next start. */
async function sendEnvironment(actor: SandboxActor): Promise<boolean> {
  await actor.host.flush();
  const { runningAgent: agent } = actor;
  if (agent === undefined) return !hasContainer(actor);
  const { env: own, settingsVersion: version = 0 } = actor.facts.sandbox.spec;
  const env = { ...actor.container.env, ...own };
  const response = await actor.agentClient.sendIfReachable(agent, {
    ...{ method: "PUT", path: agentPaths.environment, requestId: "environment" },
    body: JSON.stringify({ version, env }),
  });
  await response?.body?.cancel();
  return response?.ok === true;
}

function hasContainer(actor: SandboxActor): boolean {
  const { name } = actor.facts.sandbox.state;
  return name === "starting" || name === "running" || name === "pausing";
}
