/** Finds the server and its key, and stores those of `berth login`. Never an argument: other users can see those. */
import { chmodSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { z } from "zod";
import { Failure } from "../failure.ts";
import { parseJson, writeJsonFile } from "../state/json-file.ts";

export type Server = { url: string; key: string };

/** Where `npm start` serves by default. */
export const localUrl = "http://127.0.0.1:8787";

export function findServer(cwd: string, env: NodeJS.ProcessEnv): Server {
  const stored = readCredentials(env);
  const url = omitEmpty(env.BERTH_URL);
  const key = omitEmpty(env.BERTH_KEY?.trim());
  if (key !== undefined) {
    checkKey(key);
    return { url: checkUrl(url ?? stored?.url ?? localUrl, "BERTH_URL"), key };
  }
  if (stored !== undefined && (url === undefined || isSameUrl(url, stored.url))) return stored;
  const localOrGiven = checkUrl(url ?? localUrl, "BERTH_URL");
  const local = isLocalUrl(localOrGiven) ? readLocalKey(cwd, env) : undefined;
  if (local !== undefined) return { url: localOrGiven, key: local };
  throw new Failure(
    url === undefined
      ? "No server is configured: there is no BERTH_KEY, no login, and no server started here."
      : `There is no key for ${url}.`,
    { hint: "Run `berth login`, or set BERTH_URL and BERTH_KEY.", code: "no_server" },
  );
}

/** Only a server of this machine may get the local key. */
export function isLocalUrl(url: string): boolean {
  return /^(127\.[\d.]+|localhost|\[::1\])$/.test(new URL(url).hostname);
}

/** A local server writes its key into its data folder. */
function readLocalKey(cwd: string, env: NodeJS.ProcessEnv): string | undefined {
  const data = omitEmpty(env.BERTH_DATA) ?? join(cwd, ".berth");
  try {
    return omitEmpty(readFileSync(join(data, "key"), "utf8").trim());
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

const credentialsSchema = z.strictObject({ url: z.url(), key: z.string().min(1) });

function credentialsPath(env: NodeJS.ProcessEnv): string {
  const config = env.XDG_CONFIG_HOME;
  const base =
    config === undefined || config === "" ? join(env.HOME ?? homedir(), ".config") : config;
  return join(base, "berth", "login.json");
}

function readCredentials(env: NodeJS.ProcessEnv): Server | undefined {
  const path = credentialsPath(env);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new Failure(`Cannot read ${path}: ${(error as Error).message}.`, { cause: error });
  }
  const read = credentialsSchema.safeParse(parseJson(text));
  if (read.success) return read.data;
  throw new Failure(`${path} does not contain a valid login.`, {
    hint: "Run `berth login` again.",
  });
}

export function storeCredentials(env: NodeJS.ProcessEnv, credentials: Server): string {
  const path = credentialsPath(env);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeJsonFile(path, credentials, 0o600);
  chmodSync(path, 0o600);
  return path;
}

export function removeCredentials(env: NodeJS.ProcessEnv): void {
  rmSync(credentialsPath(env), { force: true });
}
