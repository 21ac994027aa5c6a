/** Canaries in every place where a secret may be, searched for in every place where none may be. */
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join as pathOf } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { type ProcessInfo, treeOf } from "../system/processes.ts";
import { until } from "../until.ts";
import { Attacked, get, otherKey, post, put, type Sent } from "./attacked-server.ts";
import { join } from "./sockets.ts";

const bytes = "application/octet-stream";
const canary = (what: string) => `canary-${what}-${crypto.randomUUID()}`;

describe("secrets", () => {
  const berth = Attacked.shared();
  let id: string;
  const planted: Record<string, string> = {};
  const seenArguments = new Set<string>();
  /** By the program: Berth's own, and those of the sandbox's commands. */
  const seenEnvironments = { own: new Map<string, string>(), commands: new Map<string, string>() };

  const plant = (what: string): string => {
    planted[what] = canary(what);
    return planted[what];
  };
  const expectNoSecretIn = (text: string, place: string) => {
    const found = Object.keys(planted).filter((what) => text.includes(planted[what] ?? ""));
    expect(found, place).toEqual([]);
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
    planted.key = berth.server.key;
    planted.otherKey = otherKey;
    planted.secret = readFileSync(pathOf(berth.server.data, "secret"), "utf8").trim();
    const engine = environmentOf(berth.server.processOf("container/engine/main.ts").pid) ?? "";
    planted.engine = /BERTH_ENGINE_SECRET=([^\0]{20,})/.exec(engine)?.[1] ?? "none is found";
    id = await berth.create({ env: { SECRET: plant("env-of-create") } });
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
    await berth.send(put(of("/files?path=a"), bytes, plant("file")));
    expect((await berth.exec(id, { command: "cat a" })).stdout).toBe(planted.file);
    planted["lease-ticket"] = plant("lease-ticket").slice(0, 64);
    const lease = await berth.ok("POST", of("/lease"), { ticket: planted["lease-ticket"] });
    planted.lease = String(lease.token);
    const headers = { "berth-lease": planted.lease };
    const cat = { argv: ["cat"], env: { P: plant("env-of-process") } };
    const process = await berth.ok("POST", of("/processes"), cat, { headers });
    const stdin = of(`/processes/${process.id}/stdin?eof=1`);
    await berth.send({ ...put(stdin, bytes, plant("stdin-of-process"), headers), method: "POST" });
    const terminal = { id: "t", env: { T: plant("env-of-terminal") } };
    await berth.ok("POST", of("/terminals"), terminal, { headers });
    const token = await berth.ok("POST", of("/tokens"), { rights: ["read", "terminal"] });
    planted.token = String(token.token);
    planted.ticket = String((await berth.ok("POST", of("/tickets"))).ticket);
    const connect = `${berth.server.url}${of("/terminals/t/connect")}`;
    const joined = await join(`${connect}?ct=${planted.ticket}`);
    expect(joined.status).toBe(101);
    joined.socket?.send(`echo ${plant("typed")}\n`);
    joined.socket?.close();
    planted.port = String((await berth.ok("POST", of("/ports"), { port: 8000 })).token);
    await berth.send({ ...get(`/p/8000-${id}-${planted.port}/`), key: null });
    const credentials = { username: "u", password: plant("git-password") };
    const clone = { url: "https://127.0.0.1:1/a.git", dir: "clone", credentials };
    await berth.send(post(of("/git/clone"), clone, headers));
    const running = await berth.ok("POST", of("/processes"), cat, { headers });
    const session = { id: "s", env: { S: plant("env-of-session") } };
    await berth.ok("POST", of("/sessions"), session, { headers });
    scan();
    await berth.ok("DELETE", of(`/processes/${running.id}`), undefined, { headers });
    const wrong = [`Bearer ${plant("wrong-key")}`, `Basic ${plant("basic")}`];
    for (const authorization of [...wrong, `Bearer bt_${plant("forged")}`]) {
      const { status } = await berth.send({ ...get(of()), headers: { authorization } });
      expect(status).toBe(401);
    }
    const badFolder = { command: "true", cwd: "/nowhere", env: { A: plant("bad-cwd") } };
    const killed = { command: "kill -9 $$; sleep 9", stdin: plant("killed") };
    const broken: Sent[] = [
      { method: "POST", path: of("/exec"), body: `{"command":"${plant("broken-json")}` },
      post(of("/exec"), { command: 7, stdin: plant("refused-body") }),
      { ...get(of("/nowhere")), headers: { cookie: plant("cookie"), "x-secret": plant("header") } },
      put(of("/archive"), "application/gzip", plant("archive"), headers),
      post(of("/exec"), badFolder, headers),
      post(of("/exec"), killed, headers),
    ];
    for (const call of broken) {
      const { text, status } = await berth.send(call);
      expect(status).toBeLessThan(500);
      expectNoSecretIn(text, call.path);
    }
    scan();
  });

  it("[SC18] stand in no log, no argument and no output of the server, also when parts of it are killed", async () => {
    const agent = berth.server.processes().find(isAgent);
    process.kill(agent?.pid ?? Number.NaN, "SIGKILL");
    const headers = { "berth-lease": String(planted.lease) };
    await until("another life", async () => {
      const call = { command: "true", env: { B: planted["env-of-exec"] } };
      return (await berth.send(post(of("/exec"), call, headers))).status === 200;
    });
    scan();
    const { stdout, stderr } = berth.server.launched.output;
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
    for (const [place, text] of Object.entries(places)) expectNoSecretIn(text, place);
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
        expect(given(what, program), `${what} in ${program}`).toBe(true);
        found.add(what);
      }
    }
    // They were looked for where they are.
    const inCommands = ["env-of-create", "env-of-process", "env-of-session", "env-of-terminal"];
    expect([...found].sort()).toEqual(["engine", ...inCommands, "secret"]);
  });

  it("[SC18] stand in no event, no list and no view, of the sandbox or of its tenant", async () => {
    const paths = ["", "/lease", "/metadata", "/events?limit=1000", "/processes", "/sessions"];
    const requests = [
      ...[...paths, "/terminals", "/ports", "/checkpoints"].map(of),
      ...["/v1/sandboxes", "/v1/events", "/v1/counts", "/v1/plans"],
      ...["/health", "/openapi.json", "/"],
    ];
    for (const path of requests) {
      const { text, status } = await berth.send(get(path));
      expect(status, path).toBe(200);
      expectNoSecretIn(text, path);
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
