import { afterEach, expect, test } from "vitest";
import { Floor } from "../../../container/agent/processes/floor.ts";
import { limits } from "../../../src/protocol/limits.ts";

type Reader = { from: number; position: number; form: string };

const long = 60_000;
let now = 0;
let floor = new Floor(
  long,
  () => {},
  () => now,
);
afterEach(() => {
  floor.close();
  floor = new Floor(
    long,
    () => {},
    () => now,
  );
});

/** Begins there; nobody has a reason to begin at 0 twice but a second reader. */
function begun(from: number, form = "bytes"): Reader {
  const reader = { from, position: from, form };
  floor.attach(reader, from === 0);
  return reader;
}

function sentTo(reader: Reader, position: number): void {
  reader.position = position;
  floor.sent(reader);
}

test("[P14] a reader who was cut off holds the log, until he is back, also where his end is seen after that", () => {
  const first = begun(0);
  sentTo(first, 100);
  floor.detach(first, true);
  const other = begun(200);
  expect(floor.value).toBe(100);
  const back = begun(90);
  sentTo(back, 300);
  expect(floor.value).toBe(200);
  // He comes back before his end is seen: nobody else is meant by that.
  const again = begun(290);
  sentTo(again, 400);
  floor.detach(back, true);
  sentTo(other, 500);
  expect(floor.value).toBe(400);
  floor.detach(again, true);
  expect(floor.value).toBe(400);
  floor.detach(other, false);
  expect(floor.value).toBe(400);
  floor.close();
  expect(floor.value).toBe(500);
});

test("[P31] who is cut off before his first byte and begins again at the same place is one reader, however often and late that is seen", () => {
  const first = begun(0);
  sentTo(first, 70);
  floor.detach(first, true);
  const tries = Array.from({ length: 5 }, () => begun(50));
  for (const one of tries) sentTo(one, 100);
  const last = begun(50);
  sentTo(last, 1000);
  for (const n of [3, 0, 4, 1, 2]) floor.detach(tries[n] as Reader, true);
  expect(floor.value).toBe(1000);
  // And is missed like anybody once he is gone himself.
  const other = begun(1000, "events");
  sentTo(other, 2000);
  floor.detach(last, true);
  expect(floor.value).toBe(1000);
});

test("[P31] ends that are seen in another order than they came leave nobody to be waited for", () => {
  const [one, two] = [begun(0), begun(0)];
  sentTo(one, 100);
  sentTo(two, 40);
  const next = begun(60);
  sentTo(next, 200);
  const last = begun(150);
  sentTo(last, 900);
  // The one in the middle first: who came after it is the first one's reader all the same.
  floor.detach(next, true);
  floor.detach(one, true);
  sentTo(two, 800);
  expect(floor.value).toBe(800);
});

test("[P31] a connection that was given up and arrives after the one that took its place holds nothing", () => {
  const first = begun(0);
  sentTo(first, 70);
  floor.detach(first, true);
  const next = begun(50);
  const late = begun(50);
  for (const one of [next, late]) sentTo(one, 100);
  floor.detach(late, true);
  sentTo(next, 1000);
  expect(floor.value).toBe(1000);
  // One who stayed was not given up.
  const stayed = begun(50);
  sentTo(stayed, 100);
  now += 5_000;
  floor.detach(stayed, true);
  expect(floor.value).toBe(100);
});

test("[P32] two who began at the beginning are two: the one who is cut off holds the log", () => {
  const [one, two] = [begun(0), begun(0)];
  sentTo(one, 10);
  sentTo(two, 20);
  floor.detach(one, true);
  expect(floor.value).toBe(10);
});

test("[P32] who is proven to be there after another began is no earlier connection of that one", () => {
  for (const from of [500, 550]) {
    const one = begun(500);
    sentTo(one, 550);
    const two = begun(from);
    now += 10;
    sentTo(one, 600);
    now += 5_000;
    sentTo(two, 700);
    floor.detach(one, true);
    expect(floor.value).toBe(600);
    floor.detach(two, false);
    floor.close();
  }
});

test("[P32] who asks for something else, or for what was not sent, or for what is long over, is another reader", () => {
  const sent = limits.processReplayBytes * 2;
  const others: [number, string][] = [
    [sent - 1, "events"],
    [sent + 1, "bytes"],
    [60, "bytes"],
    [40, "bytes"],
  ];
  for (const [from, form] of others) {
    const one = begun(50);
    sentTo(one, sent);
    const other = begun(from, form);
    sentTo(other, sent * 2);
    floor.detach(one, true);
    expect(floor.value).toBe(sent);
    floor.detach(other, false);
    floor.close();
  }
});

test("[P32] of two who are gone one comes back: the other is still waited for, where the lower of them was", () => {
  const [one, two] = [begun(0), begun(0)];
  sentTo(one, 10);
  sentTo(two, 20);
  floor.detach(one, true);
  floor.detach(two, true);
  const back = begun(5);
  sentTo(back, 1000);
  expect(floor.value).toBe(10);
  const too = begun(20);
  sentTo(too, 900);
  expect(floor.value).toBe(900);
});
