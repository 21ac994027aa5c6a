import { execFile } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { newFolder } from "../../new-folder.ts";
import { until } from "../../until.ts";
import { replaceEngine } from "../file-server.ts";
import { alive } from "../processes.ts";
import { startServer } from "../server.ts";

const run = promisify(execFile);

describe("npm start", () => {
  it("[O1] prints its address as one line on stdout", async () => {
    await using server = await startServer();
    expect((await server.call("GET", "/health")).body).toMatchObject({ engine: "embedded" });
    const { stdout, code } = await server.stop();
    expect(stdout).toBe(`ready on ${server.url}\n`);
    expect(code).toBe(0);
  });

  it("[O2] generates a key at its first run and prints lines that run a command with it", async () => {
    const home = newFolder("first-run");
    const env = { HOME: home, XDG_RUNTIME_DIR: home };
    await using server = await startServer({ env });
    const { output } = server.launched;
    await until("the lines are printed", () => /berth exec .*\n/.test(output.stderr));
    const lines = output.stderr.split("\n").filter((text) => text.startsWith("  "));
    const commit = "git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m first";
    const script = `git init -q repository && cd repository && ${commit}\n${lines.join("\n")}`;
    const { stdout } = await run("sh", ["-c", script], {
      cwd: home,
      env: { ...process.env, ...env },
    });
    expect(stdout).toBe("hello from sandbox\n");
    for (const name of ["key", "secret"]) {
      expect(statSync(join(server.data, name)).mode & 0o777).toBe(0o600);
    }
    expect(server.launched.output.stderr).not.toContain(server.key);
  });

  it("[O3] finds the sandboxes of the previous run, with their files and the same key", async () => {
    await using first = await startServer();
    const id = await first.create();
    const wrote = await first.exec(id, "echo kept > note && mkdir -p a/b && echo deep > a/b/c");
    expect(wrote.body).toMatchObject({ exitCode: 0 });
    await first.stop();
    await using second = await startServer({ data: first.data });
    expect(second.key).toBe(first.key);
    expect(second.launched.output.stderr).not.toContain("berth exec");
    expect((await second.call("GET", `/v1/sandboxes/${id}`)).body).toMatchObject({ id });
    const read = await second.exec(id, "cat note a/b/c");
    expect(read.body).toMatchObject({ exitCode: 0, stdout: "kept\ndeep\n" });
  });

  it("[O4] keeps its secrets out of arguments, logs and its config", async () => {
    await using server = await startServer();
    const id = await server.create();
    expect((await server.exec(id, "true")).body).toMatchObject({ exitCode: 0 });
    const secrets = [server.key, readFileSync(join(server.data, "secret"), "utf8").trim()];
    const { engine, workerd } = server;
    const environment = readFileSync(`/proc/${workerd.pid}/environ`, "utf8");
    const engineSecret = /BERTH_ENGINE_SECRET=([^\0]+)/.exec(environment)?.[1] ?? "";
    expect(engineSecret.length).toBeGreaterThan(32);
    const visible = [
      ...server.processes().map(({ command }) => command),
      ...["workerd.capnp", "processes.json", "logs/workerd.log", "logs/engine.log"].map((name) =>
        readFileSync(join(server.data, name), "utf8"),
      ),
    ].join("\n");
    expect(visible).toContain(engine.command);
    for (const secret of [...secrets, engineSecret]) expect(visible).not.toContain(secret);
  });

  it("[O5] restarts a killed engine, and the sandboxes keep their files", async () => {
    await using server = await startServer();
    const id = await server.create();
    expect((await server.exec(id, "echo before > note")).body).toMatchObject({ exitCode: 0 });
    const below = server.processes();
    await replaceEngine(server);
    await until("the sandbox answers", async () => {
      const answer = await server.exec(id, "cat note");
      return answer.status === 200 && answer.body.stdout === "before\n";
    });
    const agents = below.filter(({ command }) => command.includes("berth-agent"));
    expect(agents.length).toBeGreaterThan(0);
    expect(alive(agents)).toEqual([]);
  });

  it("[O6] lets only one server at a time use a data folder", async () => {
    await using server = await startServer();
    await expect(startServer({ data: server.data })).rejects.toThrow(
      `in use by process ${server.launcher.pid}`,
    );
    expect((await server.call("GET", "/health")).status).toBe(200);
    expect(existsSync(join(server.data, "key"))).toBe(true);
  });
});
