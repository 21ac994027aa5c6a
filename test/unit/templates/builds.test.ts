/** Builds in a complete Berth in memory: steps, failures, crashes between any two of them, and what removal leaves. */
import { describe, expect, it } from "vitest";
import type { BerthApi } from "../../../src/protocol/api.ts";
import { rights } from "../../../src/protocol/rights.ts";
import type { Template, TemplateInput } from "../../../src/protocol/template.ts";
import { FakeBerth, type ObjectCall } from "../../fakes/berth.ts";
import type { FakeContainer } from "../../fakes/container.ts";
import { until } from "../../until.ts";

const object = "templates of local";

class Builds {
  readonly calls: ObjectCall[] = [];
  /** Undefined: the object answers. */
  onCall: (call: ObjectCall) => unknown = () => undefined;
  readonly berth: FakeBerth;
  readonly api: BerthApi;

  constructor() {
    this.berth = new FakeBerth(<T>(call: ObjectCall, work: () => T) => {
      this.calls.push(call);
      return (this.onCall(call) as T | undefined) ?? work();
    });
    this.api = this.berth.bind({ tenant: "local", rights });
  }

  async build(call: Partial<TemplateInput> = {}): Promise<Template> {
    const begun = await this.api.buildTemplate({ name: "web", ...call });
    return this.untilEnded(call.name ?? "web", begun);
  }

  /** Rings the alarm meanwhile, as the platform does. A call that a crash cuts is made again. */
  async untilEnded(reference: string, { build }: Template): Promise<Template> {
    let template: Template | undefined;
    await until(`the build of ${reference} has ended`, async () => {
      await this.berth.ringAlarm(object).catch(() => undefined);
      template = await this.api
        .template(reference)
        .get({ waitMs: 100 })
        .catch(() => undefined);
      expect(template?.build.id ?? build.id).toBe(build.id);
      return template?.build.endedAt !== undefined && template.build.sandbox === undefined;
    });
    return template as Template;
  }

  async log(reference = "web"): Promise<string> {
    return (await this.api.template(reference).log()).text;
  }

  async sandboxes(): Promise<string[]> {
    const { sandboxes } = await this.api.list();
    return sandboxes.map(({ id }) => id);
  }

  trees() {
    return this.berth.dump(object).get("tree") ?? [];
  }
}

describe("a build", () => {
  it("[TP1] runs its steps, keeps their output, and leaves a version but no sandbox", async () => {
    const builds = new Builds();
    const template = await builds.build({
      steps: [{ run: "echo one" }, { env: { COLOR: "blue" } }, { run: ["printenv", "COLOR"] }],
    });
    expect(template).toMatchObject({
      ...{ name: "web", tag: "latest", version: 1, envNames: ["COLOR"] },
      build: { state: "ready", step: 2, steps: 2 },
    });
    expect(await builds.log()).toMatch(/^\[1\/2\] run echo one\none\n\[2\/2\] .*\nblue\nsaved/);
    expect(await builds.sandboxes()).toEqual([]);
    const rebuilt = await builds.build({ steps: [{ run: "true" }] });
    expect(rebuilt.version).toBe(2);
  });

  it("[TP4] a create starts from it, with its environment, unless the call says otherwise", async () => {
    const builds = new Builds();
    await builds.build({ steps: [{ env: { A: "template", B: "template" } }] });
    const made = await builds.api.create({ template: "web", env: { B: "call" } });
    expect(made.template).toBe("web:latest@1");
    const sandbox = builds.api.sandbox(made.id);
    await until("it runs", async () => (await sandbox.get()).state === "running");
    expect(await sandbox.get()).toMatchObject({ files: "snapshot" });
    const read = async (name: string) => (await sandbox.exec({ argv: ["printenv", name] })).stdout;
    expect([await read("A"), await read("B")]).toEqual(["template\n", "call\n"]);
    const refused = builds.api.create({ template: "nobodys" });
    await expect(refused).rejects.toMatchObject({
      code: "not_found",
      facts: { field: "template" },
    });
    const both = builds.api.create({ template: "web", from: `${made.id}.000000000000` });
    await expect(both).rejects.toMatchObject({ code: "bad_request", facts: { field: "template" } });
  });

  it("[TP2] a failing step leaves the version before it, and no sandbox", async () => {
    const builds = new Builds();
    await builds.build();
    const failed = await builds.build({ steps: [{ run: "echo before" }, { run: "false" }] });
    expect(failed).toMatchObject({
      version: 1,
      build: { state: "failed", reason: "Step 2 (run false) exited with 1.", step: 1, steps: 2 },
    });
    expect(await builds.log()).toContain("failed: Step 2");
    expect(await builds.sandboxes()).toEqual([]);
    expect(builds.trees()).toHaveLength(1);
  });

  it("[TP5] a second build of one name is refused, and a cancelled one ends at once", async () => {
    const builds = new Builds();
    const { build } = await builds.api.buildTemplate({
      name: "web",
      steps: [{ run: "sleep 600" }],
    });
    for (const name of ["web", "web:other"]) {
      const second = builds.api.buildTemplate({ name });
      await expect(second).rejects.toMatchObject({
        code: "template_busy",
        facts: { build: build.id },
      });
    }
    await expect(builds.api.template("web").remove()).rejects.toMatchObject({
      code: "template_busy",
    });
    const cancelled = await builds.api.template("web").cancel();
    expect(cancelled.build.state).toBe("cancelled");
    expect((await builds.api.template("web").cancel()).build.state).toBe("cancelled");
    await builds.build({ name: "web", steps: [] });
    expect(await builds.sandboxes()).toEqual([]);
  });

  it.each([
    ["its sandbox is created", "make"],
    ["a step is started", "callVerb"],
    ["its files are saved", "saveForTemplate"],
    ["its sandbox is removed", "end"],
  ])("[TP6] the object that works on it crashes when %s: it continues", async (_when, verb) => {
    const builds = new Builds();
    let crashes = 0;
    const seen: string[] = [];
    builds.onCall = (call) => {
      if (call.from !== "Templates") return;
      seen.push(call.verb);
      if (call.verb !== verb || crashes >= 3) return;
      crashes += 1;
      builds.berth.crash(object);
    };
    const template = await builds.build({ steps: [{ run: "echo once" }] });
    expect(crashes).toBe(3);
    expect(template.build.state).toBe("ready");
    expect(await builds.log()).toContain("once\n");
    expect(await builds.sandboxes()).toEqual([]);
    await until("only the tree of the version is left", async () => {
      await builds.berth.ringAlarm(object);
      return builds.trees().length === 1;
    });
  });

  it("[TP6] all objects crash while its files are saved: it continues", async () => {
    const builds = new Builds();
    let container: FakeContainer | undefined;
    let sandbox = "";
    builds.onCall = ({ verb }) => {
      if (verb !== "saveForTemplate" || container !== undefined) return;
      container = builds.berth.container(sandbox);
      container.fault = { verb: "snapshot", hold: true };
    };
    const begun = await builds.api.buildTemplate({ name: "web", steps: [{ run: "true" }] });
    sandbox = begun.build.sandbox ?? "";
    await until("its files are being saved", () => (container?.held.size ?? 0) > 0);
    for (const crashed of [sandbox, object]) builds.berth.crash(crashed);
    container?.release();
    const { build } = await builds.untilEnded("web", begun);
    expect(build).toMatchObject({ state: "ready" });
    expect(container?.removedSnapshots.size).toBeGreaterThan(0);
  });

  it("[TP6] its create is refused for a moment: it continues", async () => {
    const builds = new Builds();
    let refusals = 0;
    builds.onCall = ({ from, verb }) => {
      if (from !== "Templates" || verb !== "make" || refusals++ > 0) return undefined;
      return Promise.resolve({ refused: { code: "unavailable", message: "for a moment" } });
    };
    const { build } = await builds.build();
    expect(refusals).toBeGreaterThan(1);
    expect(build).toMatchObject({ state: "ready" });
  });

  it("[TP6] its sandbox is destroyed: it has failed, and says so", async () => {
    const builds = new Builds();
    const begun = await builds.api.buildTemplate({ name: "web", steps: [{ run: "sleep 600" }] });
    const { sandbox = "" } = begun.build;
    await until("the step runs", async () => (await builds.log()).includes("[1/1]"));
    await builds.api.sandbox(sandbox).destroy();
    const { build } = await builds.untilEnded("web", begun);
    expect(build).toMatchObject({ state: "failed" });
    expect(build.reason).toContain("The sandbox of the build was lost");
  });
});

describe("a template that is removed", () => {
  it("[TP7] stays for all sandboxes of one create, which it learns of in one step", async () => {
    const builds = new Builds();
    await builds.build();
    await builds.api.create({ template: "web", count: 3, start: false });
    expect(builds.calls.filter(({ verb }) => verb === "origin")).toHaveLength(1);
    expect(builds.berth.dump(object).get("user")).toHaveLength(3);
  });

  it("[TP7] stays for a sandbox that has not started yet, and its tree goes when nothing needs it", async () => {
    const builds = new Builds();
    await builds.build({ steps: [{ run: "true" }] });
    const later = await builds.api.create({ template: "web", start: false });
    await builds.api.template("web").remove();
    await expect(builds.api.template("web").get()).rejects.toMatchObject({ code: "not_found" });
    // As if the create were long ago.
    builds.berth.rows(object, "UPDATE user SET noted_at = 0");
    await builds.berth.ringAlarm(object);
    expect(builds.trees()).toHaveLength(1);
    const sandbox = builds.api.sandbox(later.id);
    await sandbox.start();
    expect(await sandbox.get()).toMatchObject({ state: "running", files: "snapshot" });
    await builds.berth.evict(object);
    await until("the tree is removed", async () => {
      await builds.berth.ringAlarm(object);
      return builds.trees().length === 0;
    });
    expect(await sandbox.get()).toMatchObject({ state: "running" });
  });
});
