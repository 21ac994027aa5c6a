/**
 * Owns where the server and its key come from: the environment, what `berth login` stored, or a server started here.
 * Does not own the stored file (credentials.ts). A key never comes from an argument: those are seen by everybody.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../failure.ts";
import { readCredentials } from "./credentials.ts";

export type Server = {
  url: string;
  key: string;
  /** In words, for messages. */
  from: string;
};

/** Where `npm start` serves unless it is told otherwise. */
export const localUrl = "http://127.0.0.1:8787";

export function findServer(cwd: string, env: NodeJS.ProcessEnv): Server {
  const stored = readCredentials(env);
  const url = nonEmpty(env.BERTH_URL);
  const key = nonEmpty(env.BERTH_KEY?.trim());
  if (key !== undefined) {
    checkKey(key);
    return { url: checkUrl(url ?? stored?.url ?? localUrl, "BERTH_URL"), key, from: "BERTH_KEY" };
  }
  if (stored !== undefined && (url === undefined || sameUrl(url, stored.url))) {
    return { ...stored, from: "berth login" };
  }
  const near = checkUrl(url ?? localUrl, "BERTH_URL");
  const local = isThisMachine(near) ? keyOfThisMachine(cwd, env) : undefined;
  if (local !== undefined) return { ...local, url: near };
  throw new Failure(
    url === undefined
      ? "no server is known: neither BERTH_KEY, nor a login, nor a server started here"
      : `no key is known for ${url}`,
    { hint: "Run `berth login`, or set BERTH_URL and BERTH_KEY.", code: "no_server" },
  );
}

/** Its key is nobody else's business. */
function isThisMachine(url: string): boolean {
  return /^(127\.[\d.]+|localhost|\[::1\])$/.test(new URL(url).hostname);
}

/** A server of one machine writes its key into its data folder. */
function keyOfThisMachine(cwd: string, env: NodeJS.ProcessEnv): Omit<Server, "url"> | undefined {
  const data = nonEmpty(env.BERTH_DATA) ?? join(cwd, ".berth");
  const path = join(data, "key");
  try {
    const key = readFileSync(path, "utf8").trim();
    return key === "" ? undefined : { key, from: path };
  } catch {
    return undefined;
  }
}

/** What no header can carry would look like a server that cannot be reached. */
function checkKey(key: string): void {
  if (/^[\x21-\x7e]+$/.test(key)) return;
  throw new Failure("BERTH_KEY is no key: it holds spaces, or what is not ASCII", {
    hint: "Set it to one line, as it was given out.",
    code: "bad_key",
  });
}

export function checkUrl(text: string, name: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new Failure(`${name} must be an address with http or https, not '${text}'`, {
      hint: `For example ${localUrl}.`,
      code: "bad_usage",
    });
  }
  if (url.username !== "" || url.password !== "") {
    throw new Failure(`${name} must not hold a user or a password`, {
      hint: "The key goes into BERTH_KEY, or to `berth login`.",
      code: "bad_usage",
    });
  }
  return url.href.replace(/\/+$/, "");
}

function sameUrl(one: string, other: string): boolean {
  return URL.canParse(one) && new URL(one).href.replace(/\/+$/, "") === other;
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === undefined || text === "" ? undefined : text;
}
