/** The environment of the Worker, read once and checked. An error names the variable. */
import { BerthError } from "./protocol/errors.ts";
import { parseQuotas, type Quota } from "./protocol/fields/quota.ts";
import { parseSizes, type Size } from "./protocol/fields/size.ts";

/** The bindings of wrangler.toml, or of the one-machine server. */
export type Env = {
  SANDBOX: DurableObjectNamespace<import("./objects/sandbox/object.ts").SandboxObject>;
  DIRECTORY: DurableObjectNamespace<import("./objects/directory/object.ts").DirectoryObject>;
  PLAN: DurableObjectNamespace<import("./objects/plan/object.ts").PlanObject>;
  KEYS: DurableObjectNamespace<import("./objects/keys/object.ts").KeysObject>;
  TEMPLATES: DurableObjectNamespace<import("./objects/templates/object.ts").TemplatesObject>;
  /** The dashboard's files. */
  ASSETS?: Fetcher;
  BERTH_API_KEYS?: string;
  BERTH_ADMIN_KEYS?: string;
  BERTH_SECRET?: string;
  BERTH_METRICS_KEYS?: string;
  BERTH_PUBLIC_URL?: string;
  BERTH_ACCESS_LOG?: string;
  BERTH_ORIGINS?: string;
  BERTH_SIZES?: string;
  BERTH_QUOTAS?: string;
  BERTH_INSTANCE?: string;
  BERTH_PORTS_DOMAIN?: string;
  BERTH_ENGINE_URL?: string;
  BERTH_ENGINE_SECRET?: string;
  BERTH_SERVER_RUN?: string;
};

export type Config = {
  /** SHA-256 of a key, in hex → its tenant. */
  tenants: ReadonlyMap<string, string>;
  /** SHA-256 of the keys of administrators, in hex. */
  administrators: ReadonlySet<string>;
  /** SHA-256 of the keys that may read `/metrics`, in hex. */
  metricsKeys: ReadonlySet<string>;
  /** The origin at which callers reach Berth, where a proxy hides it. */
  publicUrl: string | undefined;
  accessLog: AccessLog;
  /** Signs tokens, and the MAC in sandbox ids. */
  secret: string;
  /** Pages of these origins may call from a browser and open WebSockets, in addition to the API's own origin. */
  origins: ReadonlySet<string>;
  /** Sizes that a create may choose by name. */
  sizes: ReadonlyMap<string, Size>;
  /** By tenant; see quotaOf. */
  quotas: ReadonlyMap<string, Quota>;
  /** What the platform starts for a sandbox without a size; undefined: its smallest. */
  instance: Size["instance"];
  /** The domain below which ports have hosts of their own; empty: there is none; undefined: Berth's own host. */
  portsDomain: string | undefined;
  /** Runs the containers of objects that have none attached by the platform. */
  engine: { url: string; secret: string } | undefined;
  /** On one machine: which run of the server this is, and since when. All containers end with it. */
  serverRun: { id: string; startedAt: number } | undefined;
};

/** `calls`: a line for each call. `commands`: with the text of commands, which may hold secrets. */
const accessLogs = ["off", "calls", "commands"] as const;
type AccessLog = (typeof accessLogs)[number];

const secretCharsMin = 32;
const parsed = new WeakMap<object, Config>();

/** Parses the environment on the first call in an isolate; later calls have the same `env` object. */
export function readConfig(given: Env): Config {
  const known = parsed.get(given);
  if (known !== undefined) return known;
  // workerd gives null for a variable that is not set.
  const set = Object.entries(given).filter(([, value]) => value !== null);
  const env = Object.fromEntries(set) as Env;
  const config = Object.freeze({
    tenants: readKeys(env.BERTH_API_KEYS),
    administrators: readDigests(env.BERTH_ADMIN_KEYS, "BERTH_ADMIN_KEYS"),
    metricsKeys: readDigests(env.BERTH_METRICS_KEYS, "BERTH_METRICS_KEYS"),
    publicUrl: readPublicUrl(env.BERTH_PUBLIC_URL),
    accessLog: readAccessLog(env.BERTH_ACCESS_LOG),
    secret: readSecret(env.BERTH_SECRET),
    origins: readOrigins(env.BERTH_ORIGINS),
    sizes: readSizes(env.BERTH_SIZES),
    quotas: readQuotas(env.BERTH_QUOTAS),
    instance: readInstance(env.BERTH_INSTANCE),
    portsDomain: readPortsDomain(env.BERTH_PORTS_DOMAIN),
    engine: readEngine(env),
    serverRun: readServerRun(env.BERTH_SERVER_RUN),
  });
  parsed.set(given, config);
  return config;
}

/** Entries `tenant:<sha256 hex>`, separated by commas or white space. Without any, every call is refused. */
function readKeys(text: string | undefined): ReadonlyMap<string, string> {
  const tenants = new Map<string, string>();
  for (const entry of (text ?? "").split(/[\s,]+/).filter((part) => part !== "")) {
    const match = /^([a-z0-9][a-z0-9-]{0,62}):([0-9a-f]{64})$/.exec(entry);
    if (match?.[1] === undefined || match[2] === undefined) {
      throw configError("BERTH_API_KEYS must be a list of tenant:<sha256 of its key in hex>");
    }
    tenants.set(match[2], match[1]);
  }
  return tenants;
}

function readDigests(text: string | undefined, variable: string): ReadonlySet<string> {
  const digests = (text ?? "").split(/[\s,]+/).filter((part) => part !== "");
  if (digests.every((digest) => /^[0-9a-f]{64}$/.test(digest))) return new Set(digests);
  throw configError(`${variable} must be a list of the SHA-256 of keys in hex`);
}

function readPublicUrl(text: string | undefined): string | undefined {
  if (text === undefined || text === "") return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (/^https?:$/.test(url?.protocol ?? "") && url?.href === `${url?.origin}/`) return url.origin;
  throw configError(
    "BERTH_PUBLIC_URL must be an address without a path such as https://berth.example.org",
  );
}

function readAccessLog(text: string | undefined): AccessLog {
  const chosen = accessLogs.find((name) => name === (text || "off"));
  if (chosen !== undefined) return chosen;
  throw configError(`BERTH_ACCESS_LOG must be one of ${accessLogs.join(", ")}`);
}

function readSecret(text: string | undefined): string {
  if (text === undefined || text.length < secretCharsMin) {
    throw configError(`BERTH_SECRET must be set to at least ${secretCharsMin} random characters`);
  }
  return text;
}

/** Scheme, host and port as a browser sends them, without a path. */
function readOrigins(text: string | undefined): ReadonlySet<string> {
  const origins = (text ?? "").split(/[\s,]+/).filter((part) => part !== "");
  for (const origin of origins) {
    if (URL.canParse(origin) && new URL(origin).origin === origin) continue;
    throw configError("BERTH_ORIGINS must be a list of origins such as https://app.example.org");
  }
  return new Set(origins);
}

function readSizes(text: string | undefined): ReadonlyMap<string, Size> {
  try {
    return parseSizes(text ?? "");
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw configError(`BERTH_SIZES must be a list of name:memoryMib=512,processes=256: ${why}`);
  }
}

function readQuotas(text: string | undefined): ReadonlyMap<string, Quota> {
  try {
    return parseQuotas(text ?? "");
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw configError(`BERTH_QUOTAS must be a list of tenant:sandboxes=50: ${why}`);
  }
}

function readInstance(text: string | undefined): Size["instance"] {
  if (text === undefined || text === "") return undefined;
  try {
    return parseSizes(`default:instance=${text}`).get("default")?.instance;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw configError(`BERTH_INSTANCE must be an instance type such as standard-1: ${why}`);
  }
}

function readPortsDomain(text: string | undefined): string | undefined {
  if (text === undefined || text === "" || /^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(text)) return text;
  throw configError("BERTH_PORTS_DOMAIN must be a domain such as ports.example.org");
}

/** Whether the secrets are set without which no call can be served. */
export function isConfigured({ BERTH_SECRET }: Env): boolean {
  return (BERTH_SECRET ?? "") !== "";
}

/** What the operator has to do then. */
export const unconfigured =
  "BERTH_SECRET and BERTH_API_KEYS are not set. `npm run deploy` makes and stores both; by hand: `npx wrangler secret put BERTH_SECRET` (32 random characters or more) and `npx wrangler secret put BERTH_API_KEYS` (tenant:<sha256 of its key in hex>).";

function readEngine(env: Env): Config["engine"] {
  if (env.BERTH_ENGINE_URL === undefined || env.BERTH_ENGINE_URL === "") return undefined;
  if (env.BERTH_ENGINE_SECRET === undefined || env.BERTH_ENGINE_SECRET === "") {
    throw configError("BERTH_ENGINE_SECRET must be set if BERTH_ENGINE_URL is");
  }
  return { url: env.BERTH_ENGINE_URL, secret: env.BERTH_ENGINE_SECRET };
}

/** As the launcher writes it: the time of its start in milliseconds, a dot, random characters. */
function readServerRun(text: string | undefined): Config["serverRun"] {
  const startedAt = /^(\d+)\.\w+$/.exec(text ?? "")?.[1];
  return text === undefined || startedAt === undefined
    ? undefined
    : { id: text, startedAt: Number(startedAt) };
}

/** Callers see this error, so it names the variable and its form but never its value. */
function configError(message: string): BerthError {
  return new BerthError("internal", message, {
    hint: "Correct the variable in the environment of this installation and restart it.",
  });
}
