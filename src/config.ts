/**
 * Owns the environment of the Worker, read once and checked; an error names the variable.
 * Does not own bindings to objects.
 */
import { BerthError } from "./protocol/errors.ts";
import { readSizes, type Size } from "./protocol/fields/size.ts";

/** The bindings of wrangler.toml, or of the one-machine server. */
export type Env = {
  SANDBOX: DurableObjectNamespace<import("./objects/sandbox/object.ts").SandboxObject>;
  DIRECTORY: DurableObjectNamespace<import("./objects/directory/object.ts").DirectoryObject>;
  PLAN: DurableObjectNamespace<import("./objects/plan/object.ts").PlanObject>;
  BERTH_API_KEYS?: string;
  BERTH_SECRET?: string;
  BERTH_ORIGINS?: string;
  BERTH_SIZES?: string;
  BERTH_ENGINE_URL?: string;
  BERTH_ENGINE_SECRET?: string;
};

export type Config = {
  /** SHA-256 of a key, in hex → the tenant whom it belongs to. */
  tenants: ReadonlyMap<string, string>;
  /** Of this deployment: the keyed check in ids is made with it. */
  secret: string;
  /** Of pages that may call from a browser and connect WebSockets, beside the API's own. */
  origins: ReadonlySet<string>;
  /** Among which a create may choose, by name. */
  sizes: ReadonlyMap<string, Size>;
  /** Where no container is attached to an object, this engine runs it. */
  engine: { url: string; secret: string } | undefined;
};

const secretCharsMin = 32;
const parsed = new WeakMap<object, Config>();

/** Parsed at the first call of an isolate; the same `env` object comes with each later one. */
export function configOf(env: Env): Config {
  const known = parsed.get(env);
  if (known !== undefined) return known;
  const config = Object.freeze({
    tenants: readKeys(env.BERTH_API_KEYS),
    secret: readSecret(env.BERTH_SECRET),
    origins: readOrigins(env.BERTH_ORIGINS),
    sizes: sizesOf(env.BERTH_SIZES),
    engine: readEngine(env),
  });
  parsed.set(env, config);
  return config;
}

/** `tenant:<sha256 hex>` separated by commas or white space. No key, no service. */
function readKeys(text: string | undefined): ReadonlyMap<string, string> {
  const tenants = new Map<string, string>();
  for (const entry of (text ?? "").split(/[\s,]+/).filter((part) => part !== "")) {
    const match = /^([a-z0-9][a-z0-9-]{0,62}):([0-9a-f]{64})$/.exec(entry);
    if (match?.[1] === undefined || match[2] === undefined) {
      throw misconfigured("BERTH_API_KEYS must be a list of tenant:<sha256 of its key in hex>");
    }
    tenants.set(match[2], match[1]);
  }
  return tenants;
}

function readSecret(text: string | undefined): string {
  if (text === undefined || text.length < secretCharsMin) {
    throw misconfigured(`BERTH_SECRET must be set to at least ${secretCharsMin} random characters`);
  }
  return text;
}

/** As a browser says it: scheme, host and port, and nothing behind them. */
function readOrigins(text: string | undefined): ReadonlySet<string> {
  const origins = (text ?? "").split(/[\s,]+/).filter((part) => part !== "");
  for (const origin of origins) {
    if (URL.canParse(origin) && new URL(origin).origin === origin) continue;
    throw misconfigured("BERTH_ORIGINS must be a list of origins such as https://app.example.org");
  }
  return new Set(origins);
}

function sizesOf(text: string | undefined): ReadonlyMap<string, Size> {
  try {
    return readSizes(text ?? "");
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw misconfigured(`BERTH_SIZES must be a list of name:memoryMib=512,processes=256: ${why}`);
  }
}

function readEngine(env: Env): Config["engine"] {
  if (env.BERTH_ENGINE_URL === undefined || env.BERTH_ENGINE_URL === "") return undefined;
  if (env.BERTH_ENGINE_SECRET === undefined || env.BERTH_ENGINE_SECRET === "") {
    throw misconfigured("BERTH_ENGINE_SECRET must be set where BERTH_ENGINE_URL is");
  }
  return { url: env.BERTH_ENGINE_URL, secret: env.BERTH_ENGINE_SECRET };
}

/** Told to whoever asks: it names a variable and its form, never what stands in it. */
function misconfigured(message: string): BerthError {
  return new BerthError("internal", message, {
    hint: "Set it right in the environment of this installation, then start it again.",
  });
}
