/** Finds the server and its key, and stores those of `berth login`. Never an argument: other users can see those. */
import { chmodSync, mkdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { readLocalServer, readRecordedServer } from "../../client/find-server.ts";
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
  const wanted = url === undefined ? undefined : checkUrl(url, "BERTH_URL");
  const local = findLocalServers(cwd, env).find(
    (found) => url === undefined || found.url === wanted,
  );
  if (local !== undefined) return local;
  throw new Failure(
    url === undefined
      ? "No server is known: there is no BERTH_KEY, no login, and no server of this user runs here."
      : `There is no key for ${url}.`,
    {
      hint: "Start one with `npm start` or `berth serve`, run `berth login`, or set BERTH_URL and BERTH_KEY.",
      code: "no_server",
    },
  );
}

/** The server and an administrator's key. Not the server of the login: its key belongs to a tenant. */
export function findAdministrator(cwd: string, env: NodeJS.ProcessEnv): Server {
  const url = checkUrl(env.BERTH_URL || localUrl, "BERTH_URL");
  const key =
    env.BERTH_ADMIN_KEY?.trim() || (isLocalUrl(url) ? readAdministratorKey(cwd, env) : "");
  if (key !== "") return { url, key };
  throw new Failure(`There is no administrator's key for ${url}.`, {
    hint: "Set BERTH_ADMIN_KEY; a server of one machine keeps it in <data>/admin-key.",
    code: "no_server",
  });
}

/** Only a server of this machine may get the administrator's key. */
function isLocalUrl(url: string): boolean {
  return /^(127\.[\d.]+|localhost|\[::1\])$/.test(new URL(url).hostname);
}

function readAdministratorKey(cwd: string, env: NodeJS.ProcessEnv): string {
  try {
    return readFileSync(join(env.BERTH_DATA || join(cwd, ".berth"), "admin-key"), "utf8").trim();
  } catch {
    return "";
  }
}

/**
 * The servers of this user that run on this machine: that of the data folder here, then the one that was started first.
 * Each key goes to the address that its server has recorded, and to no other.
 */
function findLocalServers(cwd: string, env: NodeJS.ProcessEnv): Server[] {
  const readFile = (path: string) => readFileSync(path, "utf8");
  const data = omitEmpty(env.BERTH_DATA) ?? join(cwd, ".berth");
  const record = join(data, "server.json");
  // The folder may be anybody's: a record of another user could name an address of theirs.
  const here = isOwnFile(record)
    ? readRecordedServer(readFile, record, join(data, "key"))
    : undefined;
  const user = readLocalServer(readFile, (name) => omitEmpty(env[name]));
  return [here, user].filter((server) => server !== undefined);
}

function isOwnFile(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found !== undefined && found.uid === process.getuid?.() && (found.mode & 0o022) === 0;
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
  const { url, key } = (parseJson(text) ?? {}) as Partial<Server>;
  const isUrl = typeof url === "string" && URL.canParse(url);
  if (isUrl && typeof key === "string" && key !== "") return { url, key };
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
