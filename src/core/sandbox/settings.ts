/** Changes the settings of a sandbox in one step, which is checked on the merged result and applied completely or not at all. */
import { BerthError } from "../../protocol/errors.ts";
import { utf8Bytes } from "../../protocol/fields/env.ts";
import { limits } from "../../protocol/limits.ts";
import type { Settings, SettingsPatch } from "../../protocol/settings.ts";
import type { SandboxSpec } from "./record.ts";

/** `changed`: the names of the fields whose value is another one now; if none is, `spec` is the same object. */
export type SettingsChange = { spec: SandboxSpec; changed: string[] } | { refuse: BerthError };

export function patchSettings(spec: SandboxSpec, patch: SettingsPatch): SettingsChange {
  const { ifVersion, env: envPatch, ...fields } = patch;
  const version = spec.settingsVersion ?? 0;
  if (ifVersion !== undefined && ifVersion !== version)
    return { refuse: versionError(version, ifVersion) };
  const env = patchEnv(spec.env, envPatch ?? {});
  const over = envError(env);
  if (over !== undefined) return { refuse: over };
  const next: SandboxSpec = { ...spec, ...withoutNulls(fields), env };
  // Null turns off what may be on by default.
  if (fields.checkpointEveryMs === null) next.checkpointEveryMs = null;
  const changed = Object.keys(patch).filter((name) => !isSame(name, spec, next));
  if (changed.length === 0) return { spec, changed };
  return { spec: { ...next, settingsVersion: version + 1 }, changed };
}

export function viewSettings(spec: SandboxSpec): Settings {
  const { idleTimeoutMs, onIdle, wake, network, env } = spec;
  return {
    version: spec.settingsVersion ?? 0,
    idleTimeoutMs,
    onIdle,
    maxLifetimeMs: spec.maxLifetimeMs ?? null,
    envNames: Object.keys(env),
    wake,
    network,
    destroyPausedAfterMs: spec.destroyPausedAfterMs ?? null,
    checkpointEveryMs: spec.checkpointEveryMs ?? null,
    keepCheckpoints: spec.keepCheckpoints ?? null,
    services: spec.services ?? [],
  };
}

function patchEnv(
  env: Record<string, string>,
  patch: Readonly<Record<string, string | null>>,
): Record<string, string> {
  const merged: Record<string, string | null> = { ...env, ...patch };
  const kept = Object.entries(merged).filter(([, value]) => value !== null);
  return Object.fromEntries(kept) as Record<string, string>;
}

/** Null means that the spec does not have the field. */
function withoutNulls(fields: object): Partial<SandboxSpec> {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries.map(([name, value]) => [name, value ?? undefined]));
}

function isSame(name: string, before: SandboxSpec, after: SandboxSpec): boolean {
  const [was, is] = [before, after].map((spec) => (spec as Record<string, unknown>)[name]);
  return name === "ifVersion" || JSON.stringify(was) === JSON.stringify(is);
}

/** The merged environment has the same limits as the one that `create` takes. */
function envError(env: Record<string, string>): BerthError | undefined {
  const { envCountMax, sandboxEnvBytesMax } = limits;
  if (Object.keys(env).length > envCountMax)
    return envLimitError(`more than ${envCountMax} variables`);
  return utf8Bytes(JSON.stringify(env)) > sandboxEnvBytesMax
    ? envLimitError(`more than ${sandboxEnvBytesMax} bytes`)
    : undefined;
}

function envLimitError(what: string): BerthError {
  return new BerthError("bad_request", `env: The environment would have ${what}.`, {
    hint: "Remove variables with null.",
    facts: { field: "env" },
  });
}

function versionError(version: number, ifVersion: number): BerthError {
  const message = `The settings have version ${version}, not ${ifVersion}.`;
  return new BerthError("version_mismatch", message, {
    hint: "Read them again and repeat the change.",
    facts: { version },
  });
}
