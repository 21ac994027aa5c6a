/** What a sandbox reaches and what it does not: none, nat, pasta, host. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  identities,
  newData,
  type Running,
  removeData,
  run,
  startEngine,
  type TestEngine,
  tracesOf,
  until,
} from "./test-engine.ts";
import {
  canMakeInternet,
  hasProgram,
  machineAddress,
  makeInternet,
  serverAddress,
  type TestInternet,
} from "./test-network.ts";

describe.each(identities())("the network of a sandbox, engine is %s", (as) => {
  let data: string;
  let engine: TestEngine | undefined;
  let host: Server;
  let hostPort: number;

  beforeAll(async () => {
    host = createServer((_request, response) => response.end("the machine"));
    await new Promise<void>((resolve) => host.listen(0, "0.0.0.0", resolve));
    hostPort = (host.address() as AddressInfo).port;
    expect(await (await fetch(`http://127.0.0.1:${hostPort}`)).text()).toBe("the machine");
  });
  afterAll(() => {
    host.close();
  });
  beforeEach(() => {
    data = newData(as);
  });
  afterEach(async () => {
    const processes = engine?.processes() ?? [];
    await engine?.stop();
    engine = undefined;
    await until("all traces gone", () => tracesOf(data, processes).length === 0);
    removeData(data);
  });

  const start = async (mode: string) => {
    const env = { BERTH_ENGINE_NETWORK: mode };
    engine = await startEngine(as, { data, env, tun: mode === "pasta" });
    return engine;
  };

  it("[R23] without internet there is only a loopback of its own: no port of the machine answers", async () => {
    const one = await run(await start("none"));
    expect(one.started.isolation.network).toBe("none");
    expect(
      (await one.sh("cat /proc/net/dev")).stdout.match(/^\s*(\w+):/gm)?.map((it) => it.trim()),
    ).toEqual(["lo:"]);
    expect(await reach(one, "127.0.0.1", hostPort)).toBe("");
    expect(await reach(one, "127.0.0.1", Number(new URL(one.started.address).port))).toBe("");
    expect(await reach(one, "127.0.0.1", Number(new URL(engine?.baseUrl ?? "").port))).toBe("");
    // It is not that nothing could be reached at all: a server of its own can.
    expect(await reachOwn(one)).toBe("mine");
  });

  it("[R24] asking for internet where there is none gives none, and a note that says so", async () => {
    const one = await run(await start("none"), { internet: true });
    expect(one.started.isolation.network).toBe("none");
    expect(one.started.notes.join()).toMatch(/internet.*BERTH_ENGINE_NETWORK/);
    expect((await run(engine as TestEngine)).started.notes).toEqual([]);
  });

  it("[R25] the host's network is shared only when asked for by name, and the note says what it opens", async () => {
    const shared = await start("host");
    const one = await run(shared, { internet: true });
    expect(one.started.isolation.network).toBe("host");
    expect(one.started.notes.join()).toMatch(/every service on its loopback/);
    expect(await reach(one, "127.0.0.1", hostPort)).toBe("the machine");
    const without = await run(shared);
    expect(without.started.isolation.network).toBe("none");
    expect(await reach(without, "127.0.0.1", hostPort)).toBe("");
  });

  const nat = as === "root" && canMakeInternet && hasProgram("nft");
  if (as === "root" && !nat) console.warn("SKIPPED nat: `ip` and `nft` are needed");
  it.skipIf(!nat)(
    "[R26] nat leads out, but not to the machine, nor to another sandbox",
    async () => {
      const internet = await makeInternet();
      try {
        const shared = await start("nat");
        const one = await run(shared, { internet: true });
        const other = await run(shared, { internet: true });
        expect(one.started.isolation.network).toBe("nat");
        await leadsOut(one, internet);
        const gateway = (
          await one.sh("ip route | sed -n 's/^default via \\([0-9.]*\\).*/\\1/p'")
        ).stdout.trim();
        expect(gateway).toMatch(/^10\.201\./);
        for (const address of [gateway, machineAddress, "127.0.0.1"]) {
          expect(await reach(one, address, hostPort), address).toBe("");
        }
        const address = (await other.sh("hostname -I")).stdout.trim();
        expect(address).toMatch(/^10\.201\./);
        const serving = other.sh(`${serveScript()} sleep 100`, 110_000).catch(() => "ended");
        const served = async () => (await reach(other, address, 8099)) === "mine";
        await until("the neighbour's server", served);
        expect(await reach(one, address, 8099)).toBe("");
        expect(await served()).toBe(true);
        await other.container.destroy("remove");
        await serving;
        // One without internet beside them stays without.
        expect((await run(shared)).started.isolation.network).toBe("none");
      } finally {
        internet.close();
      }
    },
  );

  const pasta = as === "not root" && canMakeInternet && hasProgram("pasta");
  if (as === "not root" && !pasta)
    console.warn("SKIPPED pasta: `pasta` and root for its test are needed");
  it.skipIf(!pasta)(
    "[R27] pasta leads out without root, but not to the machine's loopback",
    async () => {
      const internet = await makeInternet();
      try {
        const one = await run(await start("pasta"), { internet: true });
        expect(one.started.isolation.network).toBe("pasta");
        await leadsOut(one, internet);
        const gateway = (
          await one.sh("ip route | sed -n 's/^default via \\([0-9.]*\\).*/\\1/p'")
        ).stdout.trim();
        for (const address of ["127.0.0.1", gateway, "169.254.1.53"]) {
          expect(await reach(one, address, hostPort), address).toBe("");
        }
        const pasta = () => tracesOf(data, []).length;
        expect(pasta()).toBe(1);
        await one.container.destroy("remove");
        await until("its pasta gone", () => pasta() === 0);
        await run(engine as TestEngine, { internet: true });
        expect(pasta()).toBe(1);
        // A killed engine cannot end it; the next one does.
        await engine?.kill();
        await start("none");
        await until("the old pasta gone", () => pasta() === 0);
      } finally {
        internet.close();
      }
    },
  );
});

/** What a server says, or nothing where none answers. */
async function reach(from: Running, address: string, port: number): Promise<string> {
  const script = `import urllib.request as u; print(u.urlopen("http://${address}:${port}", timeout=2).read().decode(), end="")`;
  return (await from.sh(`python3 -c '${script}'`)).stdout;
}

async function leadsOut(from: Running, internet: TestInternet): Promise<void> {
  const seenFrom = await reach(from, serverAddress, internet.port);
  // By the machine's own address: that of a sandbox means nothing outside.
  expect(seenFrom).toBe(machineAddress);
}

function serveScript(): string {
  const server =
    "import http.server as h\\n" +
    "class A(h.BaseHTTPRequestHandler):\\n" +
    ' def do_GET(s): s.send_response(200); s.end_headers(); s.wfile.write(b"mine")\\n' +
    'h.HTTPServer(("0.0.0.0",8099),A).serve_forever()';
  return `printf '${server}' > /tmp/serve.py; python3 /tmp/serve.py >/dev/null 2>&1 &`;
}

/** Serves and asks in one command, as what a command leaves behind is ended with it. */
async function reachOwn(from: Running, address = "127.0.0.1"): Promise<string> {
  const ask = `python3 -c 'import urllib.request as u; print(u.urlopen("http://${address}:8099", timeout=2).read().decode(), end="")' 2>/dev/null`;
  const poll = `for i in $(seq 100); do out=$(${ask}) && break; sleep 0.1; done; printf %s "$out"`;
  return (await from.sh(`${serveScript()} ${poll}`)).stdout;
}
