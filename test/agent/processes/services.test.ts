import { once } from "node:events";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import type { Service, ServiceCall, Services } from "../../../src/protocol/service.ts";
import { until } from "../../until.ts";
import { Agent } from "../agent.ts";

const agent = Agent.forBlock();
let version = 0;

async function apply(services: Partial<ServiceCall>[], given = ++version): Promise<void> {
  const calls = services.map((call) => ({ restart: "always", ...call }));
  const body = JSON.stringify({ version: given, env: { STAGE: "test" }, services: calls });
  const response = await agent.request("/v1/services", { method: "PUT", body });
  expect(response.status, await response.text()).toBe(200);
}

async function list(): Promise<Service[]> {
  return ((await (await agent.request("/v1/services")).json()) as Services).services;
}

async function stateOf(name: string): Promise<Service | undefined> {
  return (await list()).find((service) => service.name === name);
}

function untilState(name: string, state: Service["state"]): Promise<void> {
  return until(`${name} is ${state}`, async () => (await stateOf(name))?.state === state);
}

const forever = "exec sleep 1000";

test("[SV1] each service starts when the port of the one before it listens", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await apply([
    { name: "first", command: forever, port },
    { name: "second", command: forever },
  ]);
  await untilState("first", "starting");
  const ask = async () => (await agent.request(`/v1/services/ready?port=${port}&waitMs=0`)).json();
  expect(await ask()).toEqual({ ready: false });
  expect((await stateOf("second"))?.state).toBe("waiting");
  server.listen(port, "127.0.0.1");
  await untilState("second", "running");
  expect(await ask()).toEqual({ ready: true });
  server.close();
});

test("[SV2] an ended service is started again, as its policy says", async () => {
  await apply([
    { name: "always", command: "echo x >> always" },
    { name: "failing", command: "echo x >> failing; exit 3", restart: "on-failure" },
    { name: "fine", command: "echo x >> fine", restart: "on-failure" },
    { name: "never", command: "echo x >> never; exit 3", restart: "never" },
  ]);
  await until("two were started again", async () => {
    const restarts = new Map((await list()).map((service) => [service.name, service.restarts]));
    return (restarts.get("always") ?? 0) >= 2 && (restarts.get("failing") ?? 0) >= 2;
  });
  expect(await stateOf("fine")).toMatchObject({ state: "ended", restarts: 0, exitCode: 0 });
  expect(await stateOf("never")).toMatchObject({ state: "ended", restarts: 0, exitCode: 3 });
  expect((await agent.sh("cat fine never")).stdout).toBe("x\nx\n");
});

test("[SV3] services do not keep the sandbox busy, and report each start and end", async () => {
  await apply([{ name: "steady", command: forever }]);
  await untilState("steady", "running");
  await until("nothing else is busy", async () => (await agent.work()).idleMs > 0);
  const { endings, processes } = await agent.work();
  expect(processes).toBe(1);
  const reported = endings.filter(({ id }) => id === "never");
  expect(reported).toMatchObject([
    { kind: "service", what: "started" },
    { kind: "service", what: "ended", exitCode: 3, reason: "exited" },
  ]);
  expect(endings.filter(({ kind }) => kind === "process")).toEqual([]);
});

test("[SV4] a new list ends what is gone, leaves the same running, and an overtaken one changes nothing", async () => {
  const before = (await stateOf("steady"))?.process;
  await apply([
    { name: "steady", command: forever },
    { name: "more", command: `test "$STAGE" = test && ${forever}` },
  ]);
  await untilState("more", "running");
  expect((await stateOf("steady"))?.process).toBe(before);
  await apply([], version - 1);
  expect(await list()).toHaveLength(2);
  await apply([{ name: "steady", command: `: changed; ${forever}` }]);
  await untilState("steady", "running");
  expect((await stateOf("steady"))?.process).not.toBe(before);
  await apply([]);
  await until("all have ended", async () => (await agent.work()).processes === 0);
});
