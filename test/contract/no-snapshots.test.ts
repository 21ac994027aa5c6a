import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { FakeBerth } from "../fakes/berth.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: Date.now() }));
afterEach(() => void vi.useRealTimers());

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: Date.now() }));
afterEach(() => void vi.useRealTimers());

it("[S18] neither a pause nor idleness ends a container whose files would be lost", async () => {
  const berth = new FakeBerth();
  const local = berth.bind({ tenant: "local" });
  const { id } = await local.create({ start: false, idleTimeoutMs: 1_000 });
  berth.container(id).keepsFiles = false;
  berth.container(id).savesFiles = false;
  await berth.evict(id);
  const box = local.sandbox(id);
  expect((await box.start()).state).toBe("running");
  await expect(box.pause()).rejects.toMatchObject({ code: "unsupported" });
  await expect(box.pause({ force: true })).rejects.toMatchObject({ code: "unsupported" });
  vi.setSystemTime(Date.now() + 1_100);
  for (let n = 0; n < 3; n++) expect(await berth.ringAlarm(id)).toBe(true);
  expect((await box.get()).state).toBe("running");
  expect((await box.destroy()).state).toBe("destroyed");
});
