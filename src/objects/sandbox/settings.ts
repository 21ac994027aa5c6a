/** The calls on the settings: one request makes one commit, and a running agent gets the new environment. */
import { patchSettings, viewSettings } from "../../core/sandbox/settings.ts";
import { BerthError } from "../../protocol/errors.ts";
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
  const atNextStart: NonNullable<Settings["atNextStart"]> = [];
  if (hasContainer(actor)) {
    const given = (["env", "services"] as const).filter((name) => change[name] !== undefined);
    // A repeated call sends them again: the first one may have ended between the commit and the request.
    if (given.length > 0 && !(await actor.settingsCopy.tryNow())) atNextStart.push(...given);
    if (changed.includes("network")) atNextStart.push("network");
    actor.workMonitor.checkSoon();
  }
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

function hasContainer(actor: SandboxActor): boolean {
  const { name } = actor.facts.sandbox.state;
  return name === "starting" || name === "running" || name === "pausing";
}
