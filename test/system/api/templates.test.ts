/** Templates by the public API of a real server: steps, what starts from them, kills, and what removal leaves. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Template } from "../../../src/protocol/template.ts";
import { until } from "../../until.ts";
import { replaceEngine, replaceWorkerd } from "../file-server.ts";
import { sharedServerOfFile } from "../shared-server.ts";

const server = await sharedServerOfFile();

const build = (body: object) => server.call("POST", "/v1/templates", body);
const inspect = async (name: string) =>
  (await server.call("GET", `/v1/templates/${name}`)).body as unknown as Template;
const logOf = async (name: string) =>
  String((await server.call("GET", `/v1/templates/${name}/log`)).body.text);

async function ended(name: string): Promise<Template> {
  let template = await inspect(name);
  await until(`the build of ${name} has ended`, async () => {
    template = await inspect(name);
    return template.build.endedAt !== undefined && template.build.sandbox === undefined;
  });
  return template;
}

async function make(body: object): Promise<string> {
  const { status, body: made } = await server.call("POST", "/v1/sandboxes", {
    ...{ waitMs: 20_000, ...body },
  });
  expect([status, made.state]).toEqual([201, "running"]);
  return String(made.id);
}

const run = async (id: string, command: string) =>
  (await server.call("POST", `/v1/sandboxes/${id}/exec`, { command })).body.stdout;

const trees = () => readdirSync(join(server.data, "engine", "snapshots"));

describe("templates by the API", () => {
  it("[TP1] [TP3] [TP4] steps leave files, environment, folder and a service to every sandbox", async () => {
    const steps = [
      { env: { GREETING: "hello" } },
      { cwd: "site" },
      { run: 'echo "$GREETING" > index.html; echo visible' },
      { run: ["sh", "-c", "pwd; sudo -n true && sudo touch /usr/local/built || true"] },
    ];
    const start = "exec python3 -m http.server 8123";
    const begun = await build({ name: "site:v1", steps, start, ready: { port: 8123 } });
    expect(begun).toMatchObject({ status: 202, body: { build: { state: "building", steps: 3 } } });
    const template = await ended("site:v1");
    expect(template).toMatchObject({
      ...{ version: 1, cwd: "/workspace/site", envNames: ["GREETING"] },
      build: { state: "ready", step: 3 },
    });
    expect(await logOf("site:v1")).toMatch(/run echo .*\nvisible\n.*\n\/workspace\/site\n/);
    const id = await make({ template: "site:v1", env: { GREETING: "mine" } });
    expect(await run(id, "cat index.html; echo $GREETING; pwd")).toBe(
      "hello\nmine\n/workspace/site\n",
    );
    await until("its service listens", async () => {
      const { body } = await server.call("GET", `/v1/sandboxes/${id}/services`);
      return (body.services as { state: string }[])[0]?.state === "running";
    });
    const { body: sandboxes } = await server.call("GET", "/v1/sandboxes");
    expect((sandboxes.sandboxes as { id: string }[]).map((listed) => listed.id)).toEqual([id]);
    const next = await build({
      name: "site:v2",
      from: { template: "site:v1" },
      steps: [{ run: "pwd" }],
    });
    expect(next.status).toBe(202);
    expect(await ended("site:v2")).toMatchObject({ version: 2, build: { state: "ready" } });
    expect(await run(await make({ template: "site:v2" }), "cat index.html")).toBe("hello\n");
  });

  it("[TP2] [TP5] a failing step and a cancelled build leave no sandbox, no tree and the version before", async () => {
    const before = trees().length;
    await build({ name: "bad", steps: [{ run: "echo made > file; exit 3" }] });
    const failed = await ended("bad");
    expect(failed.build).toMatchObject({ state: "failed", step: 0 });
    expect(failed.build.reason).toMatch(/^Step 1 .* exited with 3\.$/);
    const refused = await server.call("POST", "/v1/sandboxes", { template: "bad" });
    expect(refused).toMatchObject({ status: 404, body: { error: { field: "template" } } });
    await build({ name: "bad", steps: [{ run: "sleep 600" }] });
    expect(await build({ name: "bad" })).toMatchObject({
      status: 409,
      body: { error: { code: "template_busy" } },
    });
    const cancelled = await server.call("POST", "/v1/templates/bad/cancel");
    expect(cancelled.body).toMatchObject({ build: { state: "cancelled" } });
    await ended("bad");
    expect(trees().length).toBe(before);
  });

  it("[TP8] what is wrong is refused with its field, and nothing is made", async () => {
    const wrong: [object, string][] = [
      [{ name: "Upper" }, "name"],
      [{ name: "w", steps: [{}] }, "steps.0"],
      [{ name: "w", steps: [{ run: "a", cwd: "b" }] }, "steps.0"],
      [{ name: "w", steps: [{ run: 7 }] }, "steps.0.run"],
      [{ name: "w", steps: [{ fly: "a" }] }, "steps.0.fly"],
      [{ name: "w", ready: { port: 80 } }, "ready"],
      [{ name: "w", from: { image: "a:1", template: "b" } }, "from"],
      [{ name: "w", from: { template: "nobodys" } }, "template"],
      [{ name: "w", size: "none" }, "size"],
    ];
    for (const [body, field] of wrong)
      expect((await build(body)).body, field).toMatchObject({ error: { field } });
    expect((await server.call("GET", "/v1/templates/w")).status).toBe(404);
  });

  it("[TP6] a build survives a kill of workerd, and a kill of the engine ends it with a reason", async () => {
    const steps = [{ run: "while [ ! -e go ]; do sleep 0.1; done; echo went > went" }];
    const begun = await build({ name: "kept", steps });
    const { sandbox } = (begun.body as unknown as Template).build;
    await until("the step runs", async () => (await logOf("kept")).includes("[1/1]"));
    await replaceWorkerd(server);
    await run(String(sandbox), "touch go");
    expect((await ended("kept")).build).toMatchObject({ state: "ready" });
    expect(await run(await make({ template: "kept" }), "cat went")).toBe("went\n");

    await build({ name: "lost", steps: [{ run: "sleep 600" }] });
    await until("the step runs", async () => (await logOf("lost")).includes("[1/1]"));
    await replaceEngine(server);
    const lost = await ended("lost");
    expect(lost.build.state).toBe("failed");
    expect(lost.build.reason).not.toBe("");
    expect(lost.version).toBeUndefined();
  });

  it("[TP7] removal harms no sandbox that stands on it", async () => {
    await build({ name: "gone", steps: [{ run: "echo kept > file" }] });
    expect((await ended("gone")).build.state).toBe("ready");
    const { body } = await server.call("POST", "/v1/sandboxes", { template: "gone", start: false });
    expect((await server.call("DELETE", "/v1/templates/gone")).status).toBe(200);
    expect((await server.call("GET", "/v1/templates/gone")).status).toBe(404);
    expect(await run(String(body.id), "cat file")).toBe("kept\n");
  });
});
