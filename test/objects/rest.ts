/**
 * Owns the way of the suite's REST client to the door of the object tests.
 */
import type { BerthApi } from "../../src/protocol/api.ts";
import { call } from "./calls.ts";
import { restApi } from "./rest-api.ts";

/** `bearer` is a key, or a token of one sandbox. */
export function restBerth(bearer: string): BerthApi {
  return restApi((method, path, sent) => call(method, path, { key: bearer, ...sent }));
}
