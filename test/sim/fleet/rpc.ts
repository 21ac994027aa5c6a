/**
 * Owns the way from one object to another: the question waits for the asker's rows, either may be lost, a question
 * may come again much later, and the answer reaches only an asker that still is. Does not own what is asked.
 */
import type { BaseHost } from "../base-host.ts";
import type { Outcome } from "../simulated-object.ts";
import type { Fleet } from "./fleet.ts";

/** What can be asked: a being that gives its object, or a sandbox's. */
export type Asked<Object> = {
  readonly name: string;
  call<T>(what: string, work: (object: Object) => T | Promise<T>): Promise<Outcome<T>>;
};

export function ask<Object, T>(
  fleet: Fleet,
  from: BaseHost,
  to: Asked<Object>,
  what: string,
  work: (object: Object) => T | Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const lost = () => from.deliver(() => reject(new Error(`the connection was lost: ${what}`)));
    if (fleet.random.chance(fleet.weather.lossShare / 2)) {
      fleet.count("fault", "lost: question between objects");
      fleet.schedule.after(fleet.random.between(1, 2_000), `lost on the way: ${what}`, lost);
      return;
    }
    const ready =
      fleet.breakage === "what is told does not wait" ? Promise.resolve() : from.flush();
    const comesAgain = fleet.weather.repeats && fleet.random.chance(0.3);
    const lateMs = comesAgain ? fleet.random.between(1, 20_000) : 0;
    void ready.then(() => {
      void to.call(`${to.name}: ${what}`, work).then((outcome) => {
        if ("ok" in outcome) from.deliver(() => resolve(outcome.ok));
        else lost();
      });
      // Only what was sent: a question whose rows were lost with its asker never left.
      if (!comesAgain) return;
      fleet.count("fault", "a question comes twice");
      fleet.schedule.after(lateMs, `comes again: ${what}`, () => {
        void to.call(`${to.name}: ${what}, again`, work);
      });
    }, reject);
  });
}
