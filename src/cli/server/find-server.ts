/**
 * Finds the server and its key: from the environment, from `berth login`, or from a server started here. Never from an
 * argument, because other users can see those.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../failure.ts";
import { readCredentials } from "./credentials.ts";

export type Server = {
  url: string;
  key: string;
  /** Where the key comes from, in words. */
  source: string;
};

/** Where `npm start` serves by default. */
export const localUrl = "http://127.0.0.1:8787";

export function findServer(cwd: string, env: NodeJS.ProcessEnv): Server {
  const stored = readCredentials(env);
  const url = omitEmpty(env.BERTH_URL);
  const key = omitEmpty(env.BERTH_KEY?.trim());
  if (key !== undefined) {
    checkKey(key);
    return { url: checkUrl(url ?? stored?.url ?? localUrl, "BERTH_URL"), key, source: "BERTH_KEY" };
  }
  if (stored !== undefined && (url === undefined || isSameUrl(url, stored.url))) {
    return { ...stored, source: "berth login" };
  }
  const localOrGiven = checkUrl(url ?? localUrl, "BERTH_URL");
  const local = isLocalUrl(localOrGiven) ? readLocalKey(cwd, env) : undefined;
  if (local !== undefined) return { ...local, url: localOrGiven };
  throw new Failure(
    url === undefined
      ? "No server is configured: there is no BERTH_KEY, no login, and no server started here."
      : `There is no key for ${url}.`,
    { hint: "Run `berth login`, or set BERTH_URL and BERTH_KEY.", code: "no_server" },
  );
}

/** Only a server of this machine may get the local key. */
function isLocalUrl(url: string): boolean {
  return /^(127\.[\d.]+|localhost|\[::1\])$/.test(new URL(url).hostname);
}

/** A local server writes its key into its data folder. */
function readLocalKey(cwd: string, env: NodeJS.ProcessEnv): Omit<Server, "url"> | undefined {
  const data = omitEmpty(env.BERTH_DATA) ?? join(cwd, ".berth");
  const path = join(data, "key");
  try {
    const key = readFileSync(path, "utf8").trim();
    return key === "" ? undefined : { key, source: path };
  } catch {
    return undefined;
  }
}

/** A key that no header can carry would look like an unreachable server. */
function checkKey(key: string): void {
  if (/^[\x21-\x7e]+$/.test(key)) return;
  throw new Failure(
    "BERTH_KEY is not a valid key: it contains spaces or characters outside of ASCII.",
    {
      hint: "Set it to the key exactly as the server printed it.",
      code: "bad_key",
    },
  );
}

export function checkUrl(text: string, name: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new Failure(`${name} must be an http or https URL, not '${text}'.`, {
      hint: `For example ${localUrl}.`,
      code: "bad_usage",
    });
  }
  if (url.username !== "" || url.password !== "") {
    throw new Failure(`${name} must not contain a user or a password.`, {
      hint: "Set the key with BERTH_KEY or `berth login`.",
      code: "bad_usage",
    });
  }
  return url.href.replace(/\/+$/, "");
}

function isSameUrl(a: string, b: string): boolean {
  return URL.canParse(a) && new URL(a).href.replace(/\/+$/, "") === b;
}

function omitEmpty(text: string | undefined): string | undefined {
  return text === undefined || text === "" ? undefined : text;
}
