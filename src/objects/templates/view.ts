/** Shows templates and builds to callers. */
import type { Build } from "../../core/template/build.ts";
import { isBuilding } from "../../core/template/build.ts";
import type { Template, TemplateBuild } from "../../protocol/template.ts";
import type { ObjectHost } from "../shared/host.ts";
import { findTree, findVersion, type TemplateResult } from "./rows.ts";

export function viewTemplate(host: ObjectHost, build: Build): Template {
  const { name, tag } = build;
  const version = findVersion(host, name, tag);
  return {
    ...{ name, tag },
    ...(version === undefined ? {} : viewVersion(host, version)),
    build: viewBuild(build),
  };
}

function viewVersion(
  host: ObjectHost,
  { number, handle, made_at, result }: NonNullable<ReturnType<typeof findVersion>>,
): Partial<Template> {
  const tree = findTree(host, handle);
  const { env, cwd, user, services, image } = JSON.parse(result) as TemplateResult;
  const expiresAt = tree?.expires_at ?? null;
  return {
    version: number,
    createdAt: toIso(made_at),
    ...(expiresAt === null ? {} : { expiresAt: toIso(expiresAt) }),
    bytes: tree?.bytes ?? 0,
    ...(image === undefined ? {} : { image }),
    ...(cwd === undefined ? {} : { cwd }),
    ...(user === undefined ? {} : { user }),
    envNames: Object.keys(env),
    ...(services === undefined ? {} : { services }),
  };
}

function viewBuild(build: Build): TemplateBuild {
  const { id, state, done, actions, startedAt, sandbox } = build;
  return {
    id,
    state: isBuilding(build) ? "building" : (state.name as "ready"),
    ...(state.name === "failed" ? { reason: state.reason } : {}),
    ...{ step: done, steps: actions, startedAt: toIso(startedAt) },
    ...("at" in state ? { endedAt: toIso(state.at) } : {}),
    ...(build.isCleared ? {} : { sandbox }),
  };
}

function toIso(time: number): string {
  return new Date(time).toISOString();
}
