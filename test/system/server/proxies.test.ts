/** Berth behind nginx and Caddy, configured as docs/operate/reverse-proxy.md says, and behind a proxy without WebSockets. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { root } from "../../../container/launch/paths.js";
import { connect } from "../../../src/client/index.ts";
import { until } from "../../until.ts";
import { useSharedServer } from "../shared-server.ts";

const server = await useSharedServer();
const folder = mkdtempSync(join(tmpdir(), "berth-proxy-"));
const running: ChildProcess[] = [];
afterAll(async () => {
  for (const child of running) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const closed = new Promise((resolve) => child.once("close", resolve));
    // nginx ends its workers first; Caddy would wait for open connections.
    child.kill(child.spawnargs.includes("nginx") ? "SIGTERM" : "SIGKILL");
    await closed;
  }
  rmSync(folder, { recursive: true, force: true });
  await server[Symbol.asyncDispose]();
});

const page = readFileSync(join(root, "docs/operate/reverse-proxy.md"), "utf8");
const block = (language: string) =>
  (new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(page)?.[1] ?? "").replace(
    "127.0.0.1:8787",
    new URL(server.url).host,
  );
const host = "berth.example.com";
const has = (program: string) => spawnSync("sh", ["-c", `command -v ${program}`]).status === 0;

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}

async function run(program: string, args: string[], port: number): Promise<void> {
  const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  const child = spawn("setpriv", ["--pdeathsig", "TERM", "--", program, ...args], { env });
  running.push(child);
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (text) => (said += text));
  let hasEnded = false;
  child.once("close", () => {
    hasEnded = true;
  });
  await until(`${program} listens`, async () => {
    if (hasEnded) throw new Error(`${program} ended: ${said}`);
    return spawnSync("bash", ["-c", `exec 3<>/dev/tcp/127.0.0.1/${port}`]).status === 0;
  });
}

async function startNginx(config: (port: number) => string): Promise<number> {
  const port = await freePort();
  const file = join(folder, `nginx-${port}.conf`);
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  const user = process.getuid?.() === 0 ? "user root;" : "";
  writeFileSync(
    file,
    `${user} pid ${folder}/nginx-${port}.pid; error_log stderr; daemon off; events {}
     http { access_log off; ${paths.join(" ")} ${config(port)} }`,
  );
  await run("nginx", ["-p", folder, "-c", file], port);
  return port;
}

function certificate(): { pem: string; key: string } {
  const [pem, key] = [join(folder, "cert.pem"), join(folder, "cert.key")];
  const subject = ["-subj", `/CN=${host}`, "-addext", `subjectAltName=DNS:${host}`];
  const made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", ...subject];
  execFileSync("openssl", [...made, "-keyout", key, "-out", pem], { stdio: "ignore" });
  return { pem, key };
}

const proxies: Record<string, () => Promise<number>> = {
  nginx: () => {
    const { pem, key } = certificate();
    return startNginx((port) =>
      block("nginx")
        .replace("listen 443 ssl", `listen 127.0.0.1:${port} ssl`)
        .replace("/etc/ssl/berth.pem", pem)
        .replace("/etc/ssl/berth.key", key),
    );
  },
  caddy: async () => {
    const port = await freePort();
    const file = join(folder, "Caddyfile");
    const site = block("caddy").replace(`${host} {`, `https://${host}:${port} {\n  tls internal`);
    writeFileSync(
      file,
      `{\n  admin off\n  skip_install_trust\n  auto_https disable_redirects\n}\n${site}`,
    );
    await run("caddy", ["run", "--config", file, "--adapter", "caddyfile"], port);
    return port;
  },
};

/** A request through the proxy. Its certificate is signed by nobody. */
function ask(port: number, method: string, path: string, body?: string | Buffer) {
  return new Promise<IncomingMessage>((resolve, reject) => {
    const headers = {
      host: `${host}:${port}`,
      authorization: `Bearer ${server.key}`,
      ...(path.includes("/logs?") ? { accept: "application/octet-stream" } : {}),
      ...(typeof body === "string" ? { "content-type": "application/json" } : {}),
    };
    const options = { host: "127.0.0.1", port, method, path, headers, servername: host };
    const sent = request({ ...options, rejectUnauthorized: false }, resolve);
    sent.once("error", reject);
    sent.end(body);
  });
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of response) text += chunk;
  return text;
}

describe.each(Object.keys(proxies))("behind %s", (name) => {
  it.skipIf(!has(name))(
    "[PX1] streams are live, WebSockets open and large bodies pass",
    async () => {
      const port = (await proxies[name]?.()) ?? 0;
      const id = await server.create();
      const path = `/v1/sandboxes/${id}`;
      const command = "echo one; until [ -e go ]; do sleep 0.1; done; echo two";
      const started = await textOf(
        await ask(port, "POST", `${path}/processes`, JSON.stringify({ command })),
      );
      const process = (JSON.parse(started) as { id: string }).id;
      const logs = await ask(
        port,
        "GET",
        `${path}/processes/${process}/logs?follow=1&stream=stdout`,
      );
      expect(logs.headers).toMatchObject({
        "cache-control": "no-store, no-transform",
        ...(name === "caddy" ? { "x-accel-buffering": "no" } : {}),
      });
      let seen = "";
      logs.on("data", (chunk) => {
        seen += chunk;
      });
      // The second line is written only after the first one has arrived here.
      await until("the first line arrives", () => seen.includes("one"));
      expect(seen).not.toContain("two");
      const bytes = Buffer.alloc(3 * 1024 * 1024, "x");
      expect((await ask(port, "PUT", `${path}/files?path=go`, bytes)).statusCode).toBe(201);
      await until("the second line arrives", () => seen.includes("two"));

      const { ticket } = JSON.parse(await textOf(await ask(port, "POST", `${path}/tickets`))) as {
        ticket: string;
      };
      const tls = {
        ...{ rejectUnauthorized: false, servername: host },
        headers: { host: `${host}:${port}` },
      };
      const socket = new WebSocket(
        `wss://127.0.0.1:${port}${path}/lease/connect?holder=proxy&ct=${ticket}`,
        [],
        tls,
      );
      const first = await new Promise<string>((resolve, reject) => {
        socket.once("message", (data) => resolve(String(data)));
        socket.once("error", reject);
      });
      expect(JSON.parse(first)).toMatchObject({ type: "granted", holder: "proxy" });
      socket.close();
    },
  );
});

it.skipIf(!has("nginx"))(
  "[PX2] where a proxy passes no WebSockets on, a lease is kept by renewals and a terminal says so at once",
  async () => {
    const port = await startNginx(
      (listen) => `server { listen 127.0.0.1:${listen}; location / { proxy_pass ${server.url}; } }`,
    );
    const berth = connect({ url: `http://127.0.0.1:${port}`, key: server.key, WebSocket });
    const id = await server.create();
    const sandbox = berth.sandbox(id);
    const lease = await sandbox.lease.hold({ holder: "behind a proxy" });
    expect((await server.call("GET", `/v1/sandboxes/${id}/lease`)).body).toMatchObject({
      ...{ state: "held", holder: "behind a proxy" },
    });
    await lease.release();
    const chosen = sandbox.lease.hold({ by: "connection" });
    await expect(chosen).rejects.toMatchObject({ code: "upgrade_required" });
    const terminal = await sandbox.terminals.create({ id: "one" });
    await expect(terminal.attach()).rejects.toMatchObject({
      code: "upgrade_required",
      hint: expect.stringContaining("reverse-proxy"),
    });
  },
);
