/**
 * Measures a server in a sandbox through its port address, against the same server called directly. Correctness is
 * tested in test/system/api/ports.test.ts.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Berth } from "../berth.ts";
import { type Bench, comparison, type Figure } from "../figure.ts";
import { Http } from "../http.ts";
import { inTurns, megabytesPerSecond, timed } from "../measure.ts";
import { freePort } from "../peers/program.ts";

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

type Server = { http: Http; path: string };

export async function port(bench: Bench): Promise<Figure[]> {
  const direct = await startDirectServer(bench);
  const through = await startServerInSandbox(await Berth.start(bench));
  for (const { http } of [direct, through]) bench.closes(() => http.close());
  const times = await inTurns(
    bench,
    "small responses, block",
    { turns: bench.isShort ? 8 : 40, each: 25 },
    { through: () => smallResponseMs(through), direct: () => smallResponseMs(direct) },
  );
  const rates = await inTurns(
    bench,
    "large responses, round",
    { turns: bench.isShort ? 2 : 5 },
    { through: () => downloadRate(through), direct: () => downloadRate(direct) },
  );
  return [
    comparison("a server's port: small response, median", times),
    comparison("a server's port: 200 MB down", rates, {
      format: (rate) => `${rate.toFixed(0)} MB/s`,
    }),
  ];
}

function smallResponseMs({ http, path }: Server): Promise<number> {
  return timed(async () => {
    const text = await http.ok("GET", `${path}small`);
    if (text !== "ok") throw new Error(`the server returned ${text}`);
  });
}

function downloadRate({ http, path }: Server): Promise<number> {
  return megabytesPerSecond(bytes, () => http.download(`${path}large`, bytes));
}

/** Starts the same program on the machine. */
async function startDirectServer(bench: Bench): Promise<Server> {
  const to = await freePort();
  const argv = ["--pdeathsig", "KILL", "--", "python3", "-c", program, String(to)];
  const child = spawn("setpriv", argv, { stdio: "ignore" });
  bench.closes(() => killAndWait(child));
  return waitUntilServing({ http: new Http(`http://127.0.0.1:${to}`), path: "/" });
}

async function killAndWait(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.kill("SIGKILL")) await once(child, "exit");
}

async function waitUntilServing(server: Server): Promise<Server> {
  const deadline = performance.now() + 20_000;
  for (;;) {
    const ms = await smallResponseMs(server).catch(() => undefined);
    if (ms !== undefined) return server;
    if (performance.now() > deadline) throw new Error(`${server.http.url} does not respond`);
    await sleep(20);
  }
}

/** Under the path-based address, which needs no host name. */
async function startServerInSandbox(berth: Berth): Promise<Server> {
  const path = `/v1/sandboxes/${await berth.create()}`;
  const { http } = berth;
  const argv = ["python3", "-c", program, String(inside)];
  await http.ok("POST", `${path}/processes`, { argv });
  const { pathUrl } = await http.json<{ pathUrl: string }>("POST", `${path}/ports`, {
    port: inside,
  });
  return waitUntilServing({ http: new Http(pathUrl), path: new URL(pathUrl).pathname });
}
