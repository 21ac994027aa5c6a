import { expect, test } from "vitest";
import { measure } from "../../../container/agent/metrics/meters.ts";
import { CgroupMeters } from "../../../container/engine/jail/meters.ts";
import type { Metrics } from "../../../src/protocol/metrics.ts";
import { until } from "../../until.ts";
import { Agent } from "../agent.ts";
import { Asker } from "./processes.ts";

const agent = Agent.forBlock();

async function read(query = ""): Promise<Metrics> {
  const response = await agent.request(`/v1/metrics${query}`);
  expect(response.status).toBe(200);
  return (await response.json()) as Metrics;
}

async function newest() {
  const { metrics } = await read("?last=1");
  expect(metrics).toHaveLength(1);
  const [metric] = metrics;
  if (metric === undefined) throw new Error("there is no measurement");
  return metric;
}

test("[ME2] a measurement counts the agent's descendants, whose time stays after their end", async () => {
  const before = await newest();
  expect(before.memoryBytes).toBeGreaterThan(1e6);
  expect(before.network?.receivedBytes).toBeGreaterThanOrEqual(0);
  const busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 1000";
  const { id } = await new Asker(agent).start({ argv: ["sh", "-c", busy] });
  await until("the process is counted", async () => {
    const { processes, processorMs } = await newest();
    return processes > before.processes && processorMs > before.processorMs + 50;
  });
  const during = await newest();
  const ended = await agent.request(`/v1/processes/${id}`, { method: "DELETE" });
  expect(ended.ok, await ended.text()).toBe(true);
  await until("it is gone", async () => (await newest()).processes < during.processes);
  expect((await newest()).processorMs).toBeGreaterThanOrEqual(during.processorMs);
  const { limits } = await read();
  expect(limits?.memoryBytes).toBeGreaterThan(before.memoryBytes);
  expect(limits?.diskBytes).toBeGreaterThanOrEqual(before.diskBytes);
  expect(limits?.processors).toBeGreaterThan(0);
});

test("[ME2] many callers at once share one measurement", async () => {
  const all = await Promise.all(Array.from({ length: 50 }, newest));
  expect(new Set(all.map((metric) => metric.at)).size).toBeLessThan(all.length);
});

test("[ME2] a workspace that was moved away ends no measurement", () => {
  const meters = { cgroup: new CgroupMeters([]), hasOwnNetwork: false };
  expect(measure(meters, "/no/such/folder")).toMatchObject({ diskBytes: 0 });
});
