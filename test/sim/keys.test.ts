/**
 * Plays the histories whose clients have keys, alone: what breaks keys is found by them in seconds.
 */
import { expect, it } from "vitest";
import { play } from "./history.ts";
import { planOf } from "./plan.ts";

const histories = 250;

it("[K7] keeps every key's promise in histories of crashes, losses and delays: none runs twice, none waits for ever", async () => {
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
