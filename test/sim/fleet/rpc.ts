/**
 * Calls from one object to another: the request waits for the caller's rows, request or response may be lost, a request may
 * arrive a second time much later, and the response reaches only a caller that still exists.
 */
import type { BaseHost } from "../base-host.ts";
import type { Outcome } from "../simulated-object.ts";
import type { Fleet } from "./fleet.ts";

/** An object that can be called. */
export type CallTarget<Object> = {
  readonly name: string;
  call<T>(what: string, work: (object: Object) => T | Promise<T>): Promise<Outcome<T>>;
};

export function callObject<Object, T>(
  fleet: Fleet,
  from: BaseHost,
  to: CallTarget<Object>,
  what: string,
  work: (object: Object) => T | Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const lost = () => from.deliver(() => reject(new Error(`the connection was lost: ${what}`)));
    if (fleet.random.chance(fleet.weather.lossShare / 2)) {
      fleet.count("fault", "lost: request between objects");
      fleet.schedule.after(fleet.random.between(1, 2_000), `lost on the way: ${what}`, lost);
      return;
    }
    const ready =
      fleet.breakage === "requests do not wait for rows" ? Promise.resolve() : from.flush();
    const comesAgain = fleet.weather.repeats && fleet.random.chance(0.3);
    const lateMs = comesAgain ? fleet.random.between(1, 20_000) : 0;
    void ready.then(() => {
      void to.call(`${to.name}: ${what}`, work).then((outcome) => {
        if ("ok" in outcome) from.deliver(() => resolve(outcome.ok));
        else lost();
      });
      // Only sent requests arrive again: a request whose rows were lost with its caller was never sent.
      if (!comesAgain) return;
      fleet.count("fault", "a request arrives twice");
      fleet.schedule.after(lateMs, `comes again: ${what}`, () => {
        void to.call(`${to.name}: ${what}, again`, work);
      });
    }, reject);
  });
}
