/** Reads the options of `Berth.connect`, and what the environment says where they are left out. */
import { findLocalServer, readVariable } from "./find-server.ts";
import type { ClientConfig, Clock, Fetch } from "./http/http-client.ts";
import { defaultRetries, type RetryPolicy } from "./http/retry.ts";
import { sleep } from "./http/timing.ts";
import type { WebSocketConstructor } from "./terminal/sockets.ts";

/** Where Berth is and how to reach it. */
export type ConnectOptions = {
  /**
   * The address of Berth, such as `http://127.0.0.1:8787`. Default: the variable `BERTH_URL`, else the server that this
   * user runs on this machine.
   */
  url?: string | undefined;
  /**
   * An API key, or the token of one sandbox. A function is called before each request, for keys that change. Default:
   * the variable `BERTH_KEY`, else the key of the server that this user runs on this machine, for its address only.
   */
  key?: string | (() => string | Promise<string>) | undefined;
  /** Sends the requests. Default: the platform's `fetch`. */
  fetch?: Fetch | undefined;
  /**
   * Opens connections that stay, such as leases and terminals. Default: the platform's `WebSocket`. Node 20 has none:
   * pass the one of the package `ws`.
   */
  WebSocket?: WebSocketConstructor | undefined;
  /** When a failed request is sent again. Default: up to 4 times within 30,000 ms. */
  retry?: Partial<RetryPolicy> | undefined;
  /** Time and randomness, for tests. Default: the real ones. */
  clock?: Partial<Clock> | undefined;
};

export function clientConfig(options: ConnectOptions): ClientConfig {
  const { url, key } = findAddress(options);
  return {
    url,
    key: typeof key === "string" ? () => key : key,
    fetch: options.fetch ?? ((to, init) => globalThis.fetch(to, init)),
    retry: { ...defaultRetries, ...options.retry },
    clock: { now: () => performance.now(), chance: Math.random, sleep, ...options.clock },
  };
}

type Address = { url: string; key: NonNullable<ConnectOptions["key"]> };

/** The key of the server on this machine goes to no other address. */
function findAddress({ url, key }: ConnectOptions): Address {
  const givenUrl = url || readVariable("BERTH_URL");
  const givenKey = key || readVariable("BERTH_KEY");
  if (givenUrl !== undefined && givenKey !== undefined) {
    return { url: checkUrl(givenUrl), key: givenKey };
  }
  const local = findLocalServer();
  const found = givenUrl === undefined ? local?.url : checkUrl(givenUrl);
  if (found === undefined) {
    throw new TypeError(
      "connect: no server is known. Pass `url` and `key`, set BERTH_URL and BERTH_KEY, or start a server on this machine.",
    );
  }
  const known = givenKey ?? (local?.url === found ? local.key : undefined);
  if (known === undefined) {
    throw new TypeError(`connect: no key is known for ${found}. Pass \`key\` or set BERTH_KEY.`);
  }
  return { url: found, key: known };
}

function checkUrl(url: string): string {
  const isHttp = URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
  if (!isHttp) {
    throw new TypeError(`connect: \`url\` must be an http or https address, but is "${url}".`);
  }
  const root = url.replace(/\/+$/, "");
  if (!root.endsWith("/v1")) return root;
  throw new TypeError(
    `connect: \`url\` is the address of Berth, without /v1: "${root.slice(0, -3)}".`,
  );
}
