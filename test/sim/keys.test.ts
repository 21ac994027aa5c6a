/** Plays only histories with idempotency keys, which finds defects of keys in seconds. */
import { expect, it } from "vitest";
import { play } from "./sandbox/history.ts";
import { planOf } from "./sandbox/script.ts";

const histories = 250;

it("[K7] runs no key twice and lets none wait for ever, in histories of crashes, losses and delays", async () => {
  let played = 0;
  let began = 0;
  for (let seed = 1; played < histories; seed++) {
    const plan = planOf(seed);
    if (!JSON.stringify(plan.steps).includes('"key":{')) continue;
    played++;
    const { violation, counts } = await play(plan);
    began += counts.get("outcome: a known key was repeated") ?? 0;
    expect(violation, `seed ${seed}`).toBeUndefined();
  }
  expect(began).toBeGreaterThan(histories);
});
