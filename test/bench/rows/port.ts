/**
 * Measures a server in a sandbox through its port address, against the same server called directly. Correctness is
 * tested in test/system/api/ports.test.ts.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { Berth } from "../berth.ts";
import { download } from "../bytes.ts";
import { type Bench, type Figure, median, round, spread } from "../figure.ts";
import { Http } from "../http.ts";

const bytes = 200_000_000;
const inside = 8124;

/** One thread per connection, which is kept alive; small responses at once, large ones in chunks. */
const program = `
import socket, sys, threading
piece = b"berth" * 13107
def serve(one):
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    held = b""
    while True:
        while b"\\r\\n\\r\\n" not in held:
            more = one.recv(65536)
            if not more: return
            held += more
        head, held = held.split(b"\\r\\n\\r\\n", 1)
        if head.startswith(b"GET /large"):
            one.sendall(b"HTTP/1.1 200 OK\\r\\ncontent-length: ${bytes}\\r\\n\\r\\n")
            left = ${bytes}
            while left: left -= one.send(piece[:left])
        else: one.sendall(b"HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\nok")
server = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=128)
while True: threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
`;

export async function port(bench: Bench): Promise<Figure[]> {
  const direct = await startDirectServer(bench);
  const berth = await Berth.start(bench);
  const through = await startServerInSandbox(berth);
  const rounds = bench.isShort ? 8 : 40;
  const each = 25;
  const sides = [
    { http: new Http(new URL(through).origin, {}), path: `${new URL(through).pathname}small` },
    { http: new Http(direct, {}), path: "/small" },
  ] as const;
  const times: [number[], number[]] = [[], []];
  for (let index = 0; index < rounds; index += 1) {
    bench.progress.of(index, rounds, "small responses, block");
    for (const side of [0, 1] as const) {
      for (let n = 0; n < each; n += 1) times[side].push(await smallResponseMs(sides[side]));
    }
  }
  for (const { http } of sides) http.close();
  const rates: [number[], number[]] = [[], []];
  for (let index = 0; index < (bench.isShort ? 2 : 5); index += 1) {
    bench.progress.say(`large responses, round ${index}`);
    for (const [side, base] of [`${through}large`, `${direct}/large`].entries()) {
      rates[side as 0 | 1].push(await downloadRate(base));
    }
  }
  return [
    {
      row: "a server's port: small response, median",
      measured: `${median(times[0]).toFixed(2)} ms against ${median(times[1]).toFixed(2)} ms`,
      ratio: round(median(times[0]) / median(times[1])),
      raw: { through: spread(times[0]), direct: spread(times[1]) },
    },
    {
      row: "a server's port: 200 MB down",
      measured: `${median(rates[0]).toFixed(0)} MB/s against ${median(rates[1]).toFixed(0)} MB/s`,
      ratio: round(median(rates[0]) / median(rates[1])),
      raw: { through: rates[0].map(Math.round), direct: rates[1].map(Math.round) },
    },
  ];
}

async function smallResponseMs({ http, path }: { http: Http; path: string }): Promise<number> {
  const startedAt = performance.now();
  const { status, text } = await http.call("GET", path);
  if (text !== "ok") throw new Error(`the server returned ${status}: ${text}`);
  return performance.now() - startedAt;
}

/** Returns MB/s. */
async function downloadRate(url: string): Promise<number> {
  const startedAt = performance.now();
  const received = await download(url);
  if (received !== bytes) throw new Error(`received ${received} of ${bytes} bytes`);
  return bytes / 1000 / (performance.now() - startedAt);
}

/** Starts the same program on the machine and returns its address. */
async function startDirectServer(bench: Bench): Promise<string> {
  const free = createServer().listen(0, "127.0.0.1");
  await once(free, "listening");
  const to = (free.address() as { port: number }).port;
  free.close();
  const argv = ["--pdeathsig", "KILL", "--", "python3", "-c", program, String(to)];
  const child = spawn("setpriv", argv, { stdio: "ignore" });
  bench.ends(() => killAndWait(child));
  await waitUntilServing(`http://127.0.0.1:${to}/small`);
  return `http://127.0.0.1:${to}`;
}

async function killAndWait(child: ChildProcess): Promise<string[]> {
  if (child.exitCode === null && child.kill("SIGKILL")) await once(child, "exit");
  return [];
}

async function waitUntilServing(url: string): Promise<void> {
  const deadline = performance.now() + 20_000;
  for (;;) {
    const received = await download(url).catch(() => 0);
    if (received > 0) return;
    if (performance.now() > deadline) throw new Error(`${url} does not respond`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Returns the path-based address, which needs no host name. */
async function startServerInSandbox(berth: Berth): Promise<string> {
  const id = await berth.create();
  const argv = ["python3", "-c", program, String(inside)];
  await call(berth, `/v1/sandboxes/${id}/processes`, { argv });
  const { pathUrl } = await call(berth, `/v1/sandboxes/${id}/ports`, { port: inside });
  await waitUntilServing(`${pathUrl}small`);
  return String(pathUrl);
}

async function call(berth: Berth, path: string, body: unknown): Promise<Record<string, unknown>> {
  const { status, text } = await berth.http.call("POST", path, JSON.stringify(body));
  if (status !== 201) throw new Error(`${path} returned ${status}: ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}
