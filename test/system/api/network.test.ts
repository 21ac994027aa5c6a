/** What a sandbox of a real Berth reaches of the machine, of Berth, of other sandboxes, and of the world outside. */
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { createServer } from "node:http";
import {
  type AddressInfo,
  connect as connectTo,
  createServer as createSocketServer,
} from "node:net";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import {
  canMakeInternet,
  hasProgram,
  machineAddress,
  makeInternet,
  serverAddress,
} from "../../engine/test-network.ts";
import { startFileServer } from "../file-server.ts";
import { linkLocals, machineAddresses, portsOf, reachedFrom, type Target } from "../sockets.ts";

const canRoute = canMakeInternet && hasProgram("nft");
const abstractName = `berth-test-${process.pid}`;
const served = 8099;

const machine = createServer((_request, response) => response.end("the machine"));
machine.listen(0, "::");
await once(machine, "listening");
const machinePort = (machine.address() as AddressInfo).port;
const abstract = createSocketServer((socket) => socket.end());
abstract.listen(`\0${abstractName}`);
await once(abstract, "listening");
const internet = canRoute ? await makeInternet() : undefined;
afterAll(() => {
  for (const part of [internet, machine, abstract]) part?.close();
});

const server = await startFileServer({
  // On every address of the machine: so that what does not answer is kept away and not just elsewhere.
  args: ["--host", "0.0.0.0"],
  env: { BERTH_ENGINE_NETWORK: canRoute ? "nat" : "none" },
});

describe("the network of a sandbox", () => {
  const runIn = async (id: string, command: string) => {
    const { body } = await server.exec(id, command);
    return String(body.stdout).trim();
  };
  const serve = async (id: string) => {
    const call = { argv: ["python3", "-m", "http.server", String(served)], cwd: "/workspace" };
    const made = await server.call("POST", `/v1/sandboxes/${id}/processes`, call);
    expect(made.status).toBe(201);
    const waiting = `/v1/sandboxes/${id}/processes/${made.body.id}/wait?for=port:${served}`;
    expect((await server.call("GET", waiting)).status).toBe(200);
  };
  /** The server of this test, and whatever of Berth listens: Worker, engine, agents. */
  const onMachine = (own: string[]): Target[] => {
    const ports = [machinePort, ...portsOf(server.processes().map(({ pid }) => pid))];
    const hosts = [...new Set([...machineAddresses(), ...own])];
    return hosts.flatMap((host) => ports.map((port) => ({ host, port })));
  };

  it("[NW1] without internet it reaches no port of the machine, of Berth or of another sandbox, and no address outside", async () => {
    const closed = await server.create({ network: { internet: false } });
    const other = await server.create({ network: { internet: true } });
    await serve(other);
    await serve(closed);
    const addresses = (await runIn(other, "hostname -I")).split(" ").filter(Boolean);
    if (canRoute) expect(addresses.length).toBeGreaterThan(0);
    const targets = [
      ...onMachine(["10.201.0.1"]),
      ...addresses.map((host) => ({ host, port: served })),
      ...[machineAddress, "169.254.169.254", "192.0.2.1"].map((host) => ({ host, port: 80 })),
      { host: serverAddress, port: internet?.port ?? 80 },
    ];
    // The machine's own, the Worker's, the engine's, and one of each agent.
    expect(new Set(targets.map(({ port }) => port)).size).toBeGreaterThanOrEqual(5);
    const own = { host: "127.0.0.1", port: served };
    expect(await reachedFrom(server, closed, [...targets, own])).toEqual([`127.0.0.1 ${served}`]);
    // Each of them is there for who may: the machine itself.
    for (const port of onMachine([]).filter(({ host }) => host === "127.0.0.1")) {
      expect((await fetch(`http://127.0.0.1:${port.port}/`)).status).toBeGreaterThan(0);
    }
    expect(await runIn(closed, "cat /proc/net/dev | grep -c :")).toBe("1");
    expect(await runIn(closed, "cat /proc/net/route | wc -l")).toBe("1");
  });

  // Only root can make a piece of internet.
  it.skipIf(!canRoute)(
    "[NW2] with internet it gets out, but reaches nothing of the machine, of Berth, or of another sandbox",
    async () => {
      const open = await server.create({ network: { internet: true } });
      const other = await server.create({ network: { internet: true } });
      await serve(other);
      const gateway = await runIn(open, "ip route | sed -n 's/^default via \\([0-9.]*\\).*/\\1/p'");
      expect(gateway).toMatch(/^10\.201\./);
      const outside = { host: serverAddress, port: internet?.port ?? 0 };
      const [neighbour = ""] = (await runIn(other, "hostname -I")).split(" ");
      expect(neighbour).toMatch(/^10\.201\./);
      const shut = [...onMachine([gateway, machineAddress]), { host: neighbour, port: served }];
      expect(shut.length).toBeGreaterThanOrEqual(10);
      expect(await reachedFrom(server, open, [...shut, outside])).toEqual([
        `${serverAddress} ${outside.port}`,
      ]);
      expect(await reachedFrom(server, other, [{ host: neighbour, port: served }])).toHaveLength(1);
      // By link-local addresses it would be on one line with the machine, whatever routes there are.
      const lines = linkLocals().map(({ address }) => ({
        host: `${address}%eth0`,
        port: machinePort,
      }));
      const mapped = [machineAddress, gateway].map((host) => `::ffff:${host}`);
      const others = mapped.map((host) => ({ host, port: machinePort }));
      expect(await reachedFrom(server, open, [...lines, ...others])).toEqual([]);
      // It listens there too, and the sandbox has such an address itself.
      for (const { address, name } of linkLocals().slice(0, 1)) {
        expect(await runIn(open, "ip -6 addr show dev eth0")).toContain("fe80:");
        const socket = connectTo({ host: `${address}%${name}`, port: machinePort });
        await once(socket, "connect");
        socket.destroy();
      }
    },
  );

  it("[NW3] abstract sockets of the machine are out of reach, with and without internet", async () => {
    for (const wanted of [false, true]) {
      const id = await server.create({ network: { internet: wanted } });
      const script = `import socket; socket.socket(socket.AF_UNIX).connect("\\0${abstractName}")`;
      const { body } = await server.call("POST", `/v1/sandboxes/${id}/exec`, {
        argv: ["python3", "-c", script],
      });
      expect(body).toMatchObject({ exitCode: 1 });
      expect(body.stderr).toContain("ConnectionRefusedError");
    }
  });

  it("[NW4] lists of hosts, which one machine cannot enforce, are refused by field, and nothing is created", async () => {
    const trees = () => readdirSync(join(server.data, "engine", "trees")).sort();
    const agents = () => readdirSync(join(server.data, "engine", "live")).sort();
    const before = [trees(), agents()];
    for (const field of ["allow", "deny"] as const) {
      const network = { internet: true, [field]: ["*.example.com"] };
      const refused = await server.call("POST", "/v1/sandboxes", { network });
      expect(refused.status).toBe(501);
      expect(refused.body.error).toMatchObject({ code: "unsupported", field: `network.${field}` });
    }
    expect([trees(), agents()]).toEqual(before);
    // It is the list that was refused, not the call.
    await server.create({ network: { internet: true } });
    expect(trees().length).toBe((before[0] ?? []).length + 1);
  });

  it("[NW8] a sandbox that cannot be created addresses no object, so nothing is left of it", async () => {
    // The Directory's own is there from here on.
    await server.create();
    const before = server.objectFiles();
    expect(before.length).toBeGreaterThan(0);
    const tooMany = Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`k${n}`, "v"]));
    const impossible: [object, number][] = [
      [{ network: { internet: true, allow: ["a.example"] } }, 501],
      [{ network: { internet: true, deny: ["a.example"] }, start: false }, 501],
      [{ metadata: tooMany }, 400],
    ];
    for (const [call, status] of impossible) {
      const refused = await server.call("POST", "/v1/sandboxes", call);
      expect(refused.status, JSON.stringify(refused.body)).toBe(status);
    }
    expect(server.objectFiles()).toEqual(before);
    // The count sees an object where one is addressed.
    await server.create();
    expect(server.objectFiles().length).toBeGreaterThan(before.length);
  });

  it("[NW5] an empty, contradictory or invalid list is refused by field", async () => {
    const wrong: [object, RegExp][] = [
      [{ internet: true, allow: [] }, /allow/],
      [{ internet: false, allow: ["a.example"] }, /network\.allow/],
      [{ internet: false, deny: ["a.example"] }, /network\.deny/],
      [{ internet: true, allow: ["https://a.example"] }, /allow\.0/],
      [{ internet: true, allow: ["A.example"] }, /allow\.0/],
      [{ internet: true, only: ["a.example"] }, /only/],
      [{ allow: ["a.example"] }, /internet/],
    ];
    for (const [network, named] of wrong) {
      const refused = await server.call("POST", "/v1/sandboxes", { network });
      expect(refused.status, JSON.stringify(network)).toBe(400);
      expect(JSON.stringify(refused.body.error)).toMatch(named);
    }
  });
});
