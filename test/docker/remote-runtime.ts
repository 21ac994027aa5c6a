/**
 * A runtime that calls a test Worker (worker/worker.ts), whose objects apply each call to their container. Earlier
 * incarnations and signals are not supported there.
 */

import { BerthError, type ErrorCode } from "../../src/protocol/errors.ts";
import type { ContainerRuntime, SavedTree, Started } from "../../src/runtime/runtime.ts";

type WorkerResponse = {
  value?: unknown;
  thrown?: { code?: ErrorCode; message: string; facts?: object };
};

const unsupported = () => Promise.reject(new Error("the platform does not support this"));

export function remoteRuntime(url: string, object: string): ContainerRuntime {
  const callWorker = async (verb: string, argument: unknown = null): Promise<unknown> => {
    const response = await fetch(`${url}/${object}/${verb}`, {
      method: "POST",
      body: JSON.stringify([argument]),
      signal: AbortSignal.timeout(90_000),
    });
    const { value, thrown } = (await response.json()) as WorkerResponse;
    if (thrown === undefined) return value;
    if (thrown.code === undefined) throw new Error(thrown.message);
    throw new BerthError(thrown.code, thrown.message, { facts: { ...thrown.facts } });
  };
  return {
    keepsFiles: false,
    savesFiles: true,
    comparesTrees: false,
    filtersHosts: true,
    start: async (options) => (await callWorker("start", options)) as Started,
    destroy: async (files) => void (await callWorker("destroy", files)),
    snapshot: async (id) => (await callWorker("snapshot", id)) as SavedTree,
    removeSnapshot: unsupported,
    changes: unsupported,
    signal: unsupported,
    monitor: unsupported,
    async agent(_address, input, init) {
      const request = new Request(input, init);
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
