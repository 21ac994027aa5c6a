/**
 * Owns the way of the SDK to the door of the object tests. Nothing is sent again: each answer is seen as it is given.
 */
import { type Berth, connect } from "../../src/client/index.ts";
import { ask } from "./calls.ts";

/** `bearer` is a key, or a token of one sandbox. */
export function restBerth(bearer: string): Berth {
  return connect({
    url: "http://berth.test",
    key: bearer,
    fetch: (url, init) => ask(new Request(url, init)),
    retry: { retries: 0 },
  });
}
