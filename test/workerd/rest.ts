/** Connects the SDK to the Worker of the workerd tests, without retries: each response is seen as it is. */
import { type Berth, connect } from "../../src/client/index.ts";
import { fetchWorker } from "./calls.ts";

/** `bearer` is a key, or a token of one sandbox. */
export function restBerth(bearer: string): Berth {
  return connect({
    url: "http://berth.test",
    key: bearer,
    fetch: (url, init) => fetchWorker(new Request(url, init)),
    retry: { retries: 0 },
  });
}
