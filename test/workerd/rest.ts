/** Connects the SDK to the Worker of the workerd tests, without retries: each response is seen as it is. */
import { type ConnectedCalls, connectCalls } from "../berth-calls.ts";
import { fetchWorker } from "./calls.ts";

/** `bearer` is a key, or a token of one sandbox. */
export function restBerth(bearer: string): ConnectedCalls {
  return connectCalls({
    url: "http://berth.test",
    key: bearer,
    fetch: (url, init) => fetchWorker(new Request(url, init)),
    retry: { retries: 0 },
  });
}
