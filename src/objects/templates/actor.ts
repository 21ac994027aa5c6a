/** Keeps the templates of one tenant: commits each change of a build, and only then acts on its sandbox. */
import { type Build, isBuilding, stepBuild } from "../../core/template/build.ts";
import { BerthError } from "../../protocol/errors.ts";
import { sandboxEnvSchema } from "../../protocol/fields/env.ts";
import { splitReference } from "../../protocol/fields/template-reference.ts";
import { limits } from "../../protocol/limits.ts";
import type { Template, TemplateLog, Templates } from "../../protocol/template.ts";
import { Alarm } from "../shared/alarm.ts";
import type { ObjectHost } from "../shared/host.ts";
import { Waiters } from "../shared/waiters.ts";
import type { BuildChange } from "./builder.ts";
import { Driver } from "./driver.ts";
import { appendLog, readLog } from "./log.ts";
import { migrate } from "./migrations.ts";
import type { TemplatePorts } from "./ports.ts";
import {
  type BuildJob,
  deleteTemplate,
  findBuild,
  findTree,
  findVersion,
  insertBuild,
  insertTree,
  insertVersion,
  listBuilds,
  loadJob,
  readJob,
  saveBuild,
  storeTree,
  type TemplateResult,
  type TreeRow,
  unneededTrees,
} from "./rows.ts";
import { forgetUsers, noteUsers } from "./trees.ts";
import { viewTemplate } from "./view.ts";

/** What a sandbox takes from a template. */
export type TemplateOrigin = TemplateResult & { base: string; version: string };

export class TemplatesActor {
  readonly #host: ObjectHost;
  readonly #ports: TemplatePorts;
  readonly #alarm: Alarm;
  readonly #waiters: Waiters;
  readonly #driver: Driver;

  constructor(host: ObjectHost, ports: TemplatePorts) {
    this.#host = host;
    this.#ports = ports;
    this.#alarm = new Alarm(host);
    this.#waiters = new Waiters(host);
    this.#driver = new Driver(host, ports, (build, change) => this.#commit(build, change));
    migrate(host);
    // Builds of an earlier instance continue: nobody stopped their sandboxes.
    this.#resume();
  }

  async build(reference: string, job: BuildJob): Promise<Template> {
    const { name, tag } = splitReference(reference);
    const { actions, result } = readJob(job);
    refuseLongEnv(result.env);
    this.#refuseBusy(name);
    await this.#untilCleared(reference);
    // Another call may have come first.
    this.#refuseBusy(name);
    const builds = listBuilds(this.#host);
    const isNew = builds.every((other) => other.name !== name || other.tag !== tag);
    refuseBeyond(isNew ? builds.length : 0, limits.templatesMax, "templatesMax", "templates");
    const running = builds.filter(isBuilding).length;
    refuseBeyond(running, limits.templateBuildsMax, "templateBuildsMax", "running builds");
    const now = this.#host.clock();
    const build: Build = {
      ...{ id: `b${this.#host.randomId(15)}`, name, tag },
      ...{ actions: actions.length, done: 0 },
      ...{ startedAt: now, until: now + limits.templateBuildMs },
      ...{ sandbox: job.make.spec.id, hasSandbox: false, isCleared: false },
      state: { name: "starting" },
    };
    this.#host.transaction(() => {
      insertBuild(this.#host, build, job);
      this.#host.sql("DELETE FROM log WHERE name = ? AND tag = ?", name, tag);
    });
    this.#resume();
    return viewTemplate(this.#host, build);
  }

  list(): Templates {
    const templates = listBuilds(this.#host).map((build) => viewTemplate(this.#host, build));
    return { templates, nextCursor: null };
  }

  /** Waits for the end of a build that runs. */
  async get(reference: string, waitMs: number): Promise<Template> {
    const until = this.#host.clock() + waitMs;
    let build = this.#known(reference);
    while (isBuilding(build)) {
      if (!(await this.#waiters.waitForChange(until - this.#host.clock()))) break;
      build = this.#known(reference);
    }
    return viewTemplate(this.#host, build);
  }

  async log(reference: string, after: number, waitMs: number): Promise<TemplateLog> {
    const until = this.#host.clock() + waitMs;
    for (;;) {
      const build = this.#known(reference);
      const part = readLog(this.#host, build, after);
      const isOver = part.text !== "" || !isBuilding(build);
      if (isOver || !(await this.#waiters.waitForChange(until - this.#host.clock()))) {
        const ended =
          !isBuilding(build) && part.cursor === readLog(this.#host, build, part.cursor).cursor;
        return { build: build.id, ...part, ended };
      }
    }
  }

  cancel(reference: string): Template {
    const build = this.#known(reference);
    this.#commit(build, { event: { type: "cancelled" }, log: "cancelled\n" });
    this.#resume();
    return viewTemplate(this.#host, this.#known(reference));
  }

  async remove(reference: string): Promise<Template> {
    const known = this.#known(reference);
    if (isBuilding(known)) throw busyError(known);
    await this.#untilCleared(reference);
    const build = this.#known(reference);
    if (isBuilding(build)) throw busyError(build);
    const view = viewTemplate(this.#host, build);
    this.#host.transaction(() => deleteTemplate(this.#host, build.name, build.tag));
    this.#resume();
    return view;
  }

  /** What sandboxes with these ids start from, which are not created yet. */
  origin(reference: string, sandboxes: readonly string[]): TemplateOrigin {
    const { name, tag } = splitReference(reference);
    const version = findVersion(this.#host, name, tag);
    const tree = version && findTree(this.#host, version.handle);
    if (version === undefined || tree === undefined || tree.stored === null) {
      const build = findBuild(this.#host, name, tag);
      const known = build === undefined ? "is not there" : "has no version yet";
      throw new BerthError("not_found", `template: ${name}:${tag} ${known}.`, {
        hint: build === undefined ? "GET /v1/templates lists them." : "Wait for its build.",
        facts: { field: "template" },
      });
    }
    this.#renew(tree);
    noteUsers(this.#host, tree.handle, sandboxes);
    this.#host.waitUntil(forgetUsers(this.#host, this.#ports, tree));
    const result = JSON.parse(version.result) as TemplateResult;
    return { ...result, base: tree.stored, version: `${name}:${tag}@${version.number}` };
  }

  async alarm(): Promise<void> {
    this.#alarm.rang();
    this.#resume();
    await this.#driver.settle();
  }

  #renew(tree: TreeRow): void {
    if (tree.expires_at === null) return;
    const now = this.#host.clock();
    if (tree.expires_at <= now) {
      throw new BerthError("checkpoint_expired", "The files of the template have expired.", {
        hint: "Build it again.",
        facts: { field: "template", expiredAt: new Date(tree.expires_at).toISOString() },
      });
    }
    storeTree(this.#host, tree.handle, { ...tree, expires_at: now + limits.checkpointLifeMs });
  }

  /** The only way to change a build that exists. Either everything is written or nothing. */
  #commit({ id, name, tag }: Build, { event, log, stored }: BuildChange): void {
    const { clock } = this.#host;
    const before = findBuild(this.#host, name, tag);
    if (before === undefined || before.id !== id) return;
    const after = stepBuild(before, event, clock());
    if (after === before) return;
    this.#host.transaction(() => {
      saveBuild(this.#host, after);
      if (log !== undefined) appendLog(this.#host, after, log);
      const { state } = after;
      if (state.name === "failed") appendLog(this.#host, after, `failed: ${state.reason}\n`);
      if (event.type === "saving") insertTree(this.#host, event.handle, id);
      if (event.type === "saved" && stored !== undefined) {
        const { handle, bytes, expiresAt } = stored;
        storeTree(this.#host, event.handle, { stored: handle, bytes, expires_at: expiresAt });
        const { result } = readJob(loadJob(this.#host, after));
        insertVersion(this.#host, after, event.handle, result, clock());
      }
    });
    this.#waiters.wakeAll();
    this.#resume();
  }

  /** Starts all that is left to do, unless it runs already. */
  #resume(): void {
    const unfinished = listBuilds(this.#host).filter(({ isCleared }) => !isCleared);
    for (const build of unfinished) void this.#driver.work(build);
    const trees = unneededTrees(this.#host);
    if (trees.length > 0) this.#driver.removeTrees(limits.templateUseMs);
    const checkMs = unfinished.length > 0 ? limits.templateCheckMs : limits.templateUseMs;
    if (unfinished.length + trees.length > 0) this.#alarm.setBy(this.#host.clock() + checkMs);
  }

  /** The sandbox of the newest build is gone, so that its row may go. */
  async #untilCleared(reference: string): Promise<void> {
    const { name, tag } = splitReference(reference);
    const until = this.#host.clock() + limits.waitMaxMs;
    for (;;) {
      const build = findBuild(this.#host, name, tag);
      if (build === undefined || build.isCleared || isBuilding(build)) return;
      if (await this.#waiters.waitForChange(until - this.#host.clock())) continue;
      throw new BerthError("template_busy", "The sandbox of its last build is being removed.", {
        hint: "Try again in a moment.",
        facts: { build: build.id },
      });
    }
  }

  /** Builds of one name share the numbers of its versions and, mostly, a person who waits. */
  #refuseBusy(name: string): void {
    const busy = listBuilds(this.#host).find((build) => build.name === name && isBuilding(build));
    if (busy !== undefined) throw busyError(busy);
  }

  #known(reference: string): Build {
    const { name, tag } = splitReference(reference);
    const build = findBuild(this.#host, name, tag);
    if (build !== undefined) return build;
    throw new BerthError("not_found", `There is no template ${name}:${tag}.`, {
      hint: "GET /v1/templates lists them.",
    });
  }
}

/** Each step fits, but not all of them together with what the origin has. */
function refuseLongEnv(env: Record<string, string>): void {
  const { success, error } = sandboxEnvSchema.safeParse(env);
  if (success) return;
  throw new BerthError("bad_request", `steps: the environment ${error.issues[0]?.message}`, {
    facts: { field: "steps" },
  });
}

function busyError({ id, name, tag }: Build): BerthError {
  return new BerthError("template_busy", `A build of ${name}:${tag} runs.`, {
    hint: "Wait for its end, or cancel it.",
    facts: { build: id },
  });
}

function refuseBeyond(count: number, max: number, limit: string, what: string): void {
  if (count < max) return;
  throw new BerthError("too_many", `There are ${count} ${what}.`, {
    hint: "Remove some that are no longer needed, or wait for their end.",
    facts: { [limit]: max },
  });
}
