/** What a sandbox can reach in each network mode: none, nat, pasta, host. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { until } from "../until.ts";
import { EnginesOfTest, identities, type RunningSandbox, run, tracesOf } from "./test-engine.ts";
import {
  canMakeInternet,
  hasProgram,
  linkLocalAddress,
  machineAddress,
  makeInternet,
  serverAddress,
  type TestInternet,
} from "./test-network.ts";

describe.each(identities())("the network of a sandbox, engine is %s", (as) => {
  // An interface or a pasta ends a moment after its sandbox.
  const engines = new EnginesOfTest(as, { tracesEndWithinMs: 60_000 });
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
  const start = (mode: string) =>
    engines.start({ BERTH_ENGINE_NETWORK: mode }, { tun: mode === "pasta" });

  it("[R23] without internet a sandbox has only its own loopback and reaches no port of the machine", async () => {
    const engine = await start("none");
    const sandbox = await run(engine);
    expect(sandbox.started.isolation.network).toBe("none");
    const { stdout } = await sandbox.sh("cat /proc/net/dev");
    expect(stdout.match(/^\s*(\w+):/gm)?.map((it) => it.trim())).toEqual(["lo:"]);
    const ownPorts = [sandbox.started.address, engine.baseUrl].map((url) => new URL(url).port);
    for (const port of [hostPort, ...ownPorts.map(Number)]) {
      expect(await fetchFrom(sandbox, "127.0.0.1", port), `${port}`).toBe("");
    }
    // The sandbox does reach a server of its own.
    expect(await fetchFromOwnServer(sandbox)).toBe("mine");
  });

  it("[R24] a sandbox that requests unavailable internet starts without it and gets a note", async () => {
    const engine = await start("none");
    const sandbox = await run(engine, { internet: true });
    expect(sandbox.started.isolation.network).toBe("none");
    expect(sandbox.started.notes.join()).toMatch(/internet.*BERTH_ENGINE_NETWORK/);
    expect((await run(engine)).started.notes).toEqual([]);
  });

  it("[R25] the host's network is shared only in mode host, and a note says what that opens", async () => {
    const shared = await start("host");
    const sandbox = await run(shared, { internet: true });
    expect(sandbox.started.isolation.network).toBe("host");
    expect(sandbox.started.notes.join()).toMatch(/every service on the machine's loopback/);
    expect(await fetchFrom(sandbox, "127.0.0.1", hostPort)).toBe("the machine");
    const without = await run(shared);
    expect(without.started.isolation.network).toBe("none");
    expect(await fetchFrom(without, "127.0.0.1", hostPort)).toBe("");
  });

  const nat = as === "root" && canMakeInternet && hasProgram("nft");
  if (as === "root" && !nat) console.warn("SKIPPED nat: `ip` and `nft` are needed");
  it.skipIf(!nat)(
    "[R26] nat reaches the internet, but neither the machine nor another sandbox",
    async () => {
      const internet = await makeInternet();
      onTestFinished(internet.close);
      const shared = await start("nat");
      const sandbox = await run(shared, { internet: true });
      const other = await run(shared, { internet: true });
      expect(sandbox.started.isolation.network).toBe("nat");
      await expectInternet(sandbox, internet);
      const gateway = await gatewayOf(sandbox);
      expect(gateway).toMatch(/^10\.201\./);
      for (const address of [gateway, machineAddress, "127.0.0.1"]) {
        expect(await fetchFrom(sandbox, address, hostPort), address).toBe("");
      }
      const address = (await other.sh("hostname -I")).stdout.trim();
      expect(address).toMatch(/^10\.201\./);
      const serving = other.sh(`${serveScript()} sleep 100`, 110_000).catch(() => "ended");
      const served = async () => (await fetchFrom(other, address, 8099)) === "mine";
      await until("the neighbour's server", served);
      expect(await fetchFrom(sandbox, address, 8099)).toBe("");
      expect(await served()).toBe(true);
      await other.container.destroy("remove");
      await serving;
      // A sandbox without internet on the same engine stays without it.
      expect((await run(shared)).started.isolation.network).toBe("none");
    },
  );

  it.skipIf(!nat)(
    "[R49] nat reaches the machine's name server at a link-local address, and nothing else there",
    async () => {
      const internet = await makeInternet();
      onTestFinished(internet.close);
      const [nameServer, other] = [linkLocalAddress(53), linkLocalAddress(54)];
      await internet.serveAt(nameServer, 53);
      await internet.serveAt(nameServer, 80);
      await internet.serveAt(other, 53);
      expect(await (await fetch(`http://${nameServer}:80`)).text()).toBe("served");
      const engine = await engines.start(
        { BERTH_ENGINE_NETWORK: "nat" },
        { resolvConf: `nameserver ${nameServer}\n` },
      );
      const sandbox = await run(engine, { internet: true });
      expect(await fetchFrom(sandbox, nameServer, 53)).toBe("served");
      expect(await fetchFrom(sandbox, nameServer, 80)).toBe("");
      expect(await fetchFrom(sandbox, other, 53)).toBe("");
    },
  );

  const pasta = as === "not root" && canMakeInternet && hasProgram("pasta");
  if (as === "not root" && !pasta)
    console.warn("SKIPPED pasta: `pasta` and root for its test are needed");
  it.skipIf(!pasta)(
    "[R27] pasta reaches the internet without root, but not the machine's loopback",
    async () => {
      const internet = await makeInternet();
      onTestFinished(internet.close);
      const engine = await start("pasta");
      const sandbox = await run(engine, { internet: true });
      expect(sandbox.started.isolation.network).toBe("pasta");
      await expectInternet(sandbox, internet);
      const gateway = await gatewayOf(sandbox);
      for (const address of ["127.0.0.1", gateway, "169.254.1.53"]) {
        expect(await fetchFrom(sandbox, address, hostPort), address).toBe("");
      }
      const pasta = () => tracesOf(engine.data, []).length;
      expect(pasta()).toBe(1);
      await sandbox.container.destroy("remove");
      await until("its pasta gone", () => pasta() === 0);
      await run(engine, { internet: true });
      expect(pasta()).toBe(1);
      // A killed engine leaves its pasta running; the next engine ends it.
      await engine.kill();
      await start("none");
      await until("the old pasta gone", () => pasta() === 0);
    },
  );
});

async function gatewayOf(from: RunningSandbox): Promise<string> {
  const route = "ip route | sed -n 's/^default via \\([0-9.]*\\).*/\\1/p'";
  return (await from.sh(route)).stdout.trim();
}

/** Returns the response of a server, or an empty string. */
async function fetchFrom(from: RunningSandbox, address: string, port: number): Promise<string> {
  const script = `import urllib.request as u; print(u.urlopen("http://${address}:${port}", timeout=2).read().decode(), end="")`;
  return (await from.sh(`python3 -c '${script}'`)).stdout;
}

async function expectInternet(from: RunningSandbox, internet: TestInternet): Promise<void> {
  const seenFrom = await fetchFrom(from, serverAddress, internet.port);
  // The server sees the machine's address, because a sandbox's address is translated.
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

/** Serves and fetches in one command, because background processes end with their command. */
async function fetchFromOwnServer(from: RunningSandbox, address = "127.0.0.1"): Promise<string> {
  const ask = `python3 -c 'import urllib.request as u; print(u.urlopen("http://${address}:8099", timeout=2).read().decode(), end="")' 2>/dev/null`;
  const poll = `for i in $(seq 100); do out=$(${ask}) && break; sleep 0.1; done; printf %s "$out"`;
  return (await from.sh(`${serveScript()} ${poll}`)).stdout;
}
