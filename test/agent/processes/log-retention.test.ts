import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { RetentionFloor } from "../../../container/agent/processes/retention-floor.ts";
import { limits } from "../../../src/protocol/limits.ts";

type Reader = { id: string | undefined; position: number };

const holdMs = 10_000;
let floor: RetentionFloor;
let rises = 0;
beforeEach(() => {
  vi.useFakeTimers();
  rises = 0;
  floor = new RetentionFloor(holdMs, () => {
    rises += 1;
  });
});
afterEach(() => {
  floor.close();
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

function attached(position: number, id?: string): Reader {
  const reader = { id, position };
  floor.attach(reader);
  return reader;
}

function cutOff(reader: Reader, position: number): void {
  reader.position = position;
  floor.detach(reader, { mayReturn: true });
}

test("[P14] a reader that was cut off holds the log until it is back, or for its time", () => {
  const other = attached(0);
  other.position = 900;
  cutOff(attached(0, "a"), 100);
  expect(floor.value).toBe(100);
  const back = attached(90, "a");
  expect(floor.value).toBe(90);
  back.position = 300;
  expect(floor.value).toBe(300);
  cutOff(back, 400);
  vi.advanceTimersByTime(holdMs - 1);
  expect(floor.value).toBe(400);
  const before = rises;
  vi.advanceTimersByTime(1);
  expect(rises).toBe(before + 1);
  expect(floor.value).toBe(900);
});

test("[P14] a reader without an id that connects again at or before its position is back", () => {
  const other = attached(0);
  other.position = 1000;
  const [one, two] = [attached(0), attached(0)];
  cutOff(one, 100);
  cutOff(two, 200);
  // Beyond both positions: another reader.
  const late = attached(300);
  expect(floor.value).toBe(100);
  late.position = 1000;
  const back = attached(150);
  back.position = 1000;
  expect(floor.value).toBe(100);
  attached(100).position = 1000;
  expect(floor.value).toBe(1000);
});

test("[P31] a reader that comes back with its id is one reader, wherever it begins", () => {
  const other = attached(0);
  other.position = 5000;
  for (const from of [1000, 900, 2000, 0]) {
    cutOff(attached(0, "a"), 1000);
    expect(floor.value).toBe(1000);
    const back = attached(from, "a");
    expect(floor.value).toBe(from);
    back.position = 4000;
    expect(floor.value).toBe(4000);
    floor.detach(back, { mayReturn: false });
    expect(floor.value).toBe(5000);
  }
});

test("[P32] readers with other ids, or without one, hold the log for themselves", () => {
  const other = attached(0);
  other.position = 5000;
  cutOff(attached(0, "a"), 1000);
  cutOff(attached(0), 2000);
  const b = attached(500, "b");
  b.position = 5000;
  expect(floor.value).toBe(1000);
  attached(0, "a").position = 5000;
  expect(floor.value).toBe(2000);
});

test("[P32] a reader that has everything is not waited for, and the furthest position stays without any", () => {
  const done = attached(0, "a");
  done.position = 700;
  floor.detach(done, { mayReturn: false });
  expect(floor.value).toBe(700);
  floor.detach(done, { mayReturn: true });
  expect(floor.value).toBe(700);
});

test("[P14] no more readers are waited for than may be connected", () => {
  for (let n = 0; n <= limits.processFollowersMax; n += 1) cutOff(attached(0, `r${n}`), n + 1);
  expect(floor.value).toBe(2);
  floor.close();
  expect(floor.value).toBe(limits.processFollowersMax + 1);
});
