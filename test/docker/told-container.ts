/**
 * Owns the seam as seen from outside of a Worker that does with its container what it is told (worker/worker.ts).
 * Does not own what has no meaning there: past lives and signals.
 */

import { BerthError, type ErrorCode } from "../../src/protocol/errors.ts";
import type { Container, Saved, Started } from "../../src/runtime/runtime.ts";

type Told = { value?: unknown; thrown?: { code?: ErrorCode; message: string; facts?: object } };

const cannot = () => Promise.reject(new Error("the platform has no such thing"));

export function toldContainer(url: string, object: string): Container {
  const tell = async (verb: string, argument: unknown = null): Promise<unknown> => {
    const response = await fetch(`${url}/${object}/${verb}`, {
      method: "POST",
      body: JSON.stringify([argument]),
      signal: AbortSignal.timeout(90_000),
    });
    const { value, thrown } = (await response.json()) as Told;
    if (thrown === undefined) return value;
    if (thrown.code === undefined) throw new Error(thrown.message);
    throw new BerthError(thrown.code, thrown.message, { facts: { ...thrown.facts } });
  };
  return {
    keepsFiles: false,
    savesFiles: true,
    comparesTrees: false,
    filtersHosts: true,
    start: async (options) => (await tell("start", options)) as Started,
    destroy: async (files) => void (await tell("destroy", files)),
    snapshot: async (id) => (await tell("snapshot", id)) as Saved,
    removeSnapshot: cannot,
    changes: cannot,
    signal: cannot,
    monitor: cannot,
    async agent(_address, asked, init) {
      const request = new Request(asked, init);
      const { pathname, search } = new URL(request.url);
      const { method, headers, body } = request;
      const response = await fetch(`${url}/${object}/agent${pathname}${search}`, {
        method,
        headers,
        ...(body === null ? {} : { body, duplex: "half" }),
      });
      if (response.headers.has("berth-test-thrown")) throw new TypeError(await response.text());
      return response;
    },
  };
}
