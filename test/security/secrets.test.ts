/** Canaries in every place where a secret may be, searched for in every place where none may be. */
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join as pathOf } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ProcessInfo, treeOf } from "../system/processes.ts";
import { until } from "../system/until.ts";
import { Attacked, otherKey } from "./attacked-server.ts";
import { join } from "./sockets.ts";

const canary = (what: string) => `canary-${what}-${crypto.randomUUID()}`;

describe("secrets", () => {
  let berth: Attacked;
  let id: string;
  const planted: Record<string, string> = {};
  const seenArguments = new Set<string>();
  /** By the program: Berth's own, and those of the sandbox's commands. */
  const seenEnvironments = { own: new Map<string, string>(), commands: new Map<string, string>() };

  const plant = (what: string): string => {
    planted[what] = canary(what);
    return planted[what];
  };
  const of = (tail = "") => `/v1/sandboxes/${id}${tail}`;
  /** The process table: arguments as any user of the machine sees them, environments as the process's own does. */
  const scan = () => {
    const tree = treeOf(berth.server.launched.child.pid ?? -1);
    const agents = new Set(tree.filter(isAgent).map(({ pid }) => pid));
    for (const { pid, parent, command } of tree) {
      seenArguments.add(command);
      const isOwn = !agents.has(parent) || command.startsWith("berth-agent");
      // Below a command are only commands.
      if (!isOwn) agents.add(pid);
      const environment = environmentOf(pid);
      if (environment !== undefined)
        seenEnvironments[isOwn ? "own" : "commands"].set(`${pid} ${command}`, environment);
    }
  };

  beforeAll(async () => {
    berth = await Attacked.start();
    planted.key = berth.server.key;
    planted.otherKey = otherKey;
    planted.secret = readFileSync(pathOf(berth.server.data, "secret"), "utf8").trim();
    const engine = environmentOf(berth.server.processOf("container/engine/main.ts").pid) ?? "";
    planted.engine = /BERTH_ENGINE_SECRET=([^\0]{20,})/.exec(engine)?.[1] ?? "none is found";
    id = await berth.create({ env: { SECRET: plant("env-of-create") } });
  });

  afterAll(async () => {
    expect(await berth.end()).toEqual([]);
  });

  it("[SC18] are given to calls that succeed, fail, break and are refused", async () => {
    const printed = await berth.exec(id, {
      command: 'printf %s "$SECRET $CALL"; cat; sleep 0.3',
      env: { CALL: plant("env-of-exec") },
      stdin: plant("stdin"),
    });
    // They do arrive where they belong.
    expect(printed.stdout).toBe(
      `${planted["env-of-create"]} ${planted["env-of-exec"]}${planted.stdin}`,
    );
    const bytes = { "content-type": "application/octet-stream" };
    await berth.send({
      method: "PUT",
      path: of("/files?path=a"),
      body: plant("file"),
      headers: bytes,
    });
    expect((await berth.exec(id, { command: "cat a" })).stdout).toBe(planted.file);
    const lease = await berth.ok("POST", of("/lease"), {
      ticket: plant("lease-ticket").slice(0, 64),
    });
    planted["lease-ticket"] = String(planted["lease-ticket"]).slice(0, 64);
    planted.lease = String(lease.token);
    const headers = { "berth-lease": planted.lease };
    const process = await berth.ok(
      "POST",
      of("/processes"),
      { argv: ["cat"], env: { P: plant("env-of-process") } },
      { headers },
    );
    await berth.send({
      method: "POST",
      path: of(`/processes/${process.id}/stdin?eof=1`),
      body: plant("stdin-of-process"),
      headers: { ...bytes, ...headers },
    });
    await berth.ok(
      "POST",
      of("/terminals"),
      { id: "t", env: { T: plant("env-of-terminal") } },
      { headers },
    );
    const token = await berth.ok("POST", of("/tokens"), { rights: ["read", "terminal"] });
    planted.token = String(token.token);
    planted.ticket = String((await berth.ok("POST", of("/tickets"))).ticket);
    const joined = await join(
      `${berth.server.url}${of("/terminals/t/connect")}?ct=${planted.ticket}`,
    );
    expect(joined.status).toBe(101);
    joined.socket?.send(`echo ${plant("typed")}\n`);
    joined.socket?.close();
    planted.port = String((await berth.ok("POST", of("/ports"), { port: 8000 })).token);
    await berth.send({ method: "GET", path: `/p/8000-${id}-${planted.port}/`, key: null });
    const credentials = { username: "u", password: plant("git-password") };
    const clone = { url: "https://127.0.0.1:1/a.git", dir: "clone", credentials };
    await berth.send({
      method: "POST",
      path: of("/git/clone"),
      body: JSON.stringify(clone),
      headers,
    });
    const running = { argv: ["cat"], env: { P: planted["env-of-process"] } };
    const runs = await berth.ok("POST", of("/processes"), running, { headers });
    const session = { id: "s", env: { S: plant("env-of-session") } };
    await berth.ok("POST", of("/sessions"), session, { headers });
    scan();
    await berth.ok("DELETE", of(`/processes/${runs.id}`), undefined, { headers });
    for (const authorization of [
      `Bearer ${plant("wrong-key")}`,
      `Basic ${plant("basic")}`,
      `Bearer bt_${plant("forged")}`,
    ]) {
      expect(
        (await berth.send({ method: "GET", path: of(), headers: { authorization } })).status,
      ).toBe(401);
    }
    const broken = [
      { method: "POST", path: of("/exec"), body: `{"command":"${plant("broken-json")}` },
      {
        method: "POST",
        path: of("/exec"),
        body: JSON.stringify({ command: 7, stdin: plant("refused-body") }),
      },
      {
        method: "GET",
        path: of("/nowhere"),
        headers: { cookie: plant("cookie"), "x-secret": plant("header") },
      },
      {
        method: "PUT",
        path: of("/archive"),
        body: plant("archive"),
        headers: { "content-type": "application/gzip", ...headers },
      },
      {
        method: "POST",
        path: of("/exec"),
        body: JSON.stringify({ command: "true", cwd: "/nowhere", env: { A: plant("bad-cwd") } }),
        headers,
      },
      {
        method: "POST",
        path: of("/exec"),
        body: JSON.stringify({ command: "kill -9 $$; sleep 9", stdin: plant("killed") }),
        headers,
      },
    ];
    for (const call of broken) {
      const { text, status } = await berth.send(call);
      expect(status).toBeLessThan(500);
      for (const [what, secret] of Object.entries(planted)) {
        expect([what, text.includes(secret)]).toEqual([what, false]);
      }
    }
    scan();
  });

  it("[SC18] stand in no log, no argument and no output of the server, also when parts of it are killed", async () => {
    const agent = berth.server.processes().find(isAgent);
    process.kill(agent?.pid ?? Number.NaN, "SIGKILL");
    const headers = { "berth-lease": String(planted.lease) };
    await until("another life", async () => {
      const body = JSON.stringify({ command: "true", env: { B: planted["env-of-exec"] } });
      return (
        (await berth.send({ method: "POST", path: of("/exec"), body, headers })).status === 200
      );
    });
    scan();
    const { stdout, stderr } = berth.server.launched.said;
    // A full log continues in another file, with another suffix.
    const full = pathOf(berth.server.data, "logs", "workerd.log.old");
    writeFileSync(full, "what a full log held\n", { mode: 0o600 });
    const logs = filesBelow(berth.server.data).filter((file) => /\.log(\.|$)/.test(file));
    expect(logs).toContain(full);
    expect(logs.length).toBeGreaterThan(2);
    expect([...seenArguments].join("\n")).toContain("workerd serve");
    const places: Record<string, string> = {
      stdout,
      stderr,
      arguments: [...seenArguments].join("\n"),
      ...Object.fromEntries(logs.map((file) => [file, readFileSync(file, "latin1")])),
    };
    expect(Object.keys(planted).length).toBeGreaterThan(20);
    for (const [place, text] of Object.entries(places)) {
      for (const [what, secret] of Object.entries(planted)) {
        expect([place, what, text.includes(secret)]).toEqual([place, what, false]);
      }
    }
  });

  it("[SC18] stand in the environment of no process that has no need of them", () => {
    const { own, commands } = seenEnvironments;
    const workerd = (program: string) => program.includes("workerd serve");
    expect([...own.keys()].filter(workerd)).not.toEqual([]);
    expect([...own.keys()].filter((program) => program.includes("engine"))).not.toEqual([]);
    // An agent's is closed to its own user; root sees it.
    const agents = [...own.keys()].filter((program) => /\bjail$/.test(program));
    expect(agents.length > 0).toBe(process.getuid?.() === 0);
    // What signs is given to workerd, which signs and asks the engine; what a command was given by its caller, it has.
    const given = (what: string, program: string) =>
      (what === "secret" && workerd(program)) ||
      (what === "engine" && (workerd(program) || program.includes("container/engine/main.ts"))) ||
      (what === "env-of-create" && commands.has(program)) ||
      (what === "env-of-process" && program.includes("cat")) ||
      (what === "env-of-session" && program.includes("bash --noprofile")) ||
      (what === "env-of-terminal" && program.includes("bash -l"));
    const found = new Set<string>();
    for (const [program, environment] of [...own, ...commands]) {
      for (const [what, secret] of Object.entries(planted)) {
        if (!environment.includes(secret)) continue;
        expect([program, what, given(what, program)]).toEqual([program, what, true]);
        found.add(what);
      }
    }
    // They were looked for where they are.
    expect([...found].sort()).toEqual([
      "engine",
      "env-of-create",
      "env-of-process",
      "env-of-session",
      "env-of-terminal",
      "secret",
    ]);
  });

  it("[SC18] stand in no event, no list and no view, of the sandbox or of its tenant", async () => {
    const paths = [
      "",
      "/lease",
      "/metadata",
      "/events?limit=1000",
      "/processes",
      "/sessions",
      "/terminals",
      "/ports",
      "/checkpoints",
    ];
    const requests = [
      ...paths.map(of),
      "/v1/sandboxes",
      "/v1/events",
      "/v1/counts",
      "/v1/plans",
      "/health",
      "/openapi.json",
      "/",
    ];
    for (const path of requests) {
      const { text, status } = await berth.send({ method: "GET", path });
      expect([path, status]).toEqual([path, 200]);
      for (const [what, secret] of Object.entries(planted)) {
        expect([path, what, text.includes(secret)]).toEqual([path, what, false]);
      }
    }
  });

  it("[SC18] lie in files that only their owner can read", () => {
    const { data } = berth.server;
    for (const name of ["key", "secret"]) expect(statSync(pathOf(data, name)).mode & 0o077).toBe(0);
    for (const file of filesBelow(pathOf(data, "objects"))) {
      const open = [pathOf(data, "objects"), data, file].every(
        (path) => (statSync(path).mode & 0o005) !== 0,
      );
      expect([file, open]).toEqual([file, false]);
    }
  });
});

function isAgent({ command }: ProcessInfo): boolean {
  return /\bjail$/.test(command) && !command.includes("unshare");
}

function environmentOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1");
  } catch {
    // It ended meanwhile, or is closed to its own user too.
    return undefined;
  }
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = pathOf(folder, entry.name);
    // Trees of sandboxes are theirs: what they were given lies there.
    if (entry.isDirectory()) return entry.name === "engine" ? ownLogs(path) : filesBelow(path);
    return entry.isFile() ? [path] : [];
  });
}

function ownLogs(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => pathOf(folder, name));
}
