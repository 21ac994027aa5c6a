/** Reads manifests and blobs from a registry that speaks the OCI distribution protocol. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createWriteStream, existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { BerthError } from "../../../src/protocol/errors.ts";
import type { ImageReference } from "../../../src/protocol/fields/image-reference.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { hashFile, sha256 } from "./digest.ts";

export type RegistrySettings = {
  /** Hosts that are reached without TLS, or by address. */
  plainHosts: ReadonlySet<string>;
  /** A file in the form of Docker's config.json, if the operator gave one. */
  authFile: string | undefined;
};

export type Descriptor = { mediaType: string; digest: string; size: number };

const manifestTypes = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.docker.distribution.manifest.v2+json",
].join(", ");

/** The names by which people know a registry, and the host that serves it. */
const servedAt: Record<string, string> = { "docker.io": "registry-1.docker.io" };

const responseMs = 30_000;
const silenceMs = 30_000;
const triesMax = 5;
const retryMs = 500;

export class Registry {
  readonly #settings: RegistrySettings;
  readonly #reference: ImageReference;
  readonly #name: string;
  readonly #signal: AbortSignal;
  #authorization: string | undefined;

  constructor(
    settings: RegistrySettings,
    reference: ImageReference,
    name: string,
    signal: AbortSignal,
  ) {
    this.#settings = settings;
    this.#reference = reference;
    this.#name = name;
    this.#signal = signal;
  }

  /** Returns the text of a manifest, whose digest is checked if the reference or the index names one. */
  async manifest(tagOrDigest: string): Promise<{ text: string; digest: string }> {
    const response = await this.#request(`manifests/${tagOrDigest}`, { accept: manifestTypes });
    if (response.status === 404) {
      throw this.#refuse("not_found", "has no such image", "Check the name and the tag.");
    }
    this.#expectOk(response);
    const text = await this.#readText(response);
    const digest = sha256(text);
    if (tagOrDigest.startsWith("sha256:") && digest !== tagOrDigest)
      throw this.#wrongDigest(tagOrDigest);
    return { text, digest };
  }

  async smallBlob({ digest, size }: Descriptor): Promise<string> {
    if (size > limits.imageManifestBytesMax) throw this.#tooLarge("its configuration");
    const response = await this.#request(`blobs/${digest}`);
    this.#expectOk(response);
    const text = await this.#readText(response);
    if (sha256(text) !== digest) throw this.#wrongDigest(digest);
    return text;
  }

  /** Writes a blob to a file, from where an earlier try ended. The file is removed if its digest is wrong. */
  async download(blob: Descriptor, path: string, onBytes: (bytes: number) => void): Promise<void> {
    const started = existsSync(path) ? statSync(path).size : 0;
    onBytes(Math.min(started, blob.size));
    let tries = 0;
    for (let had = started; ; ) {
      try {
        if (had < blob.size) await this.#append(blob, path, had, onBytes);
        break;
      } catch (error) {
        if (error instanceof BerthError || this.#signal.aborted) throw error;
        const has = existsSync(path) ? statSync(path).size : 0;
        tries = has > had ? 1 : tries + 1;
        had = has;
        if (tries >= triesMax) {
          const remedy = "Repeat the pull: it continues where this one ended.";
          throw this.#refuse("unavailable", "broke the connection repeatedly", remedy);
        }
        await Bun.sleep(retryMs * 2 ** (tries - 1));
      }
    }
    if ((await hashFile(path)) === blob.digest) return;
    rmSync(path, { force: true });
    throw this.#wrongDigest(blob.digest);
  }

  async #append(
    { digest, size }: Descriptor,
    path: string,
    from: number,
    onBytes: (bytes: number) => void,
  ): Promise<void> {
    const watch = new AbortController();
    const response = await this.#request(
      `blobs/${digest}`,
      from > 0 ? { range: `bytes=${from}-` } : {},
      watch.signal,
    );
    // A registry without ranges sends the whole blob again.
    const isRest = response.status === 206;
    if (!isRest) this.#expectOk(response);
    const file = createWriteStream(path, { flags: isRest ? "a" : "w", mode: 0o600 });
    let bytes = isRest ? from : 0;
    if (!isRest && from > 0) onBytes(-from);
    let timer = setTimeout(() => watch.abort(), silenceMs);
    try {
      for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
        clearTimeout(timer);
        timer = setTimeout(() => watch.abort(), silenceMs);
        bytes += chunk.length;
        if (bytes > size) throw this.#wrongDigest(digest);
        if (!file.write(chunk)) await once(file, "drain");
        onBytes(chunk.length);
      }
    } finally {
      clearTimeout(timer);
      await new Promise((resolve) => file.end(resolve));
    }
    if (bytes < size) throw new Error("the body ended early");
  }

  async #request(
    path: string,
    headers: Record<string, string> = {},
    silence?: AbortSignal,
  ): Promise<Response> {
    const { host, repository } = this.#reference;
    this.#refuseHost(host);
    const scheme = this.#settings.plainHosts.has(host) ? "http" : "https";
    const url = `${scheme}://${servedAt[host] ?? host}/v2/${repository}/${path}`;
    const response = await this.#fetch(url, headers, silence);
    if (response.status !== 401) return response;
    await response.body?.cancel();
    this.#authorization = await this.#logIn(response.headers.get("www-authenticate") ?? "");
    const second = await this.#fetch(url, headers, silence);
    if (second.status !== 401 && second.status !== 403) return second;
    await second.body?.cancel();
    throw this.#loginError();
  }

  async #fetch(
    url: string,
    headers: Record<string, string>,
    silence?: AbortSignal,
  ): Promise<Response> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), responseMs);
    const signals = [this.#signal, late.signal, ...(silence === undefined ? [] : [silence])];
    const authorization =
      this.#authorization === undefined ? {} : { authorization: this.#authorization };
    try {
      return await fetch(url, {
        headers: { ...headers, ...authorization },
        signal: AbortSignal.any(signals),
        // The bytes are hashed as they were stored.
        decompress: false,
      });
    } catch (error) {
      if (path(url).startsWith("blobs/")) throw error;
      throw this.#refuse("unavailable", "does not respond", "Check the host and try again.");
    } finally {
      clearTimeout(timer);
    }
  }

  /** Answers a challenge: with the operator's login, or for public images without one. */
  async #logIn(challenge: string): Promise<string> {
    const basic = this.#basicAuth();
    const realm = /realm="([^"]+)"/.exec(challenge)?.[1];
    if (!/^bearer /i.test(challenge) || realm === undefined) {
      if (basic === undefined) throw this.#loginError();
      return basic;
    }
    const url = new URL(realm);
    const service = /service="([^"]+)"/.exec(challenge)?.[1];
    if (service !== undefined) url.searchParams.set("service", service);
    url.searchParams.set("scope", `repository:${this.#reference.repository}:pull`);
    const isPlain = this.#settings.plainHosts.has(url.host);
    if (url.protocol !== "https:" && !isPlain) throw this.#loginError();
    const headers = basic === undefined ? {} : { authorization: basic };
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(responseMs) });
    const json = (await response.json().catch(() => ({}))) as {
      token?: string;
      access_token?: string;
    };
    const token = json.token ?? json.access_token;
    if (!response.ok || token === undefined) throw this.#loginError();
    return `Bearer ${token}`;
  }

  #basicAuth(): string | undefined {
    const { authFile } = this.#settings;
    if (authFile === undefined || !existsSync(authFile)) return undefined;
    const { auths = {} } = JSON.parse(readFileSync(authFile, "utf8")) as {
      auths?: Record<string, { auth?: string }>;
    };
    const auth = auths[this.#reference.host]?.auth;
    return auth === undefined ? undefined : `Basic ${auth}`;
  }

  /** An address or a host without a name could be a service of this machine that trusts it. */
  #refuseHost(host: string): void {
    const isNamed = /\.[a-z]/.test(host.replace(/:\d+$/, "")) && !host.startsWith("localhost");
    if (isNamed || this.#settings.plainHosts.has(host)) return;
    throw this.#refuse(
      "forbidden",
      "is not a host that this machine may pull from",
      `The operator can allow it: BERTH_ENGINE_REGISTRIES=${host}.`,
    );
  }

  #expectOk(response: Response): void {
    if (response.ok) return;
    void response.body?.cancel();
    throw this.#refuse("unavailable", `responded with ${response.status}`, "Try again later.");
  }

  async #readText(response: Response): Promise<string> {
    const hash = createHash("sha256");
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      bytes += chunk.length;
      if (bytes > limits.imageManifestBytesMax) throw this.#tooLarge("a manifest");
      hash.update(chunk);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString("utf8");
  }

  #wrongDigest(digest: string): BerthError {
    const what = `sent other bytes than ${digest} names`;
    return this.#refuse("bad_archive", what, "Nothing of it was kept. Do not trust this registry.");
  }

  #tooLarge(what: string): BerthError {
    const message = `${this.#name}: ${what} is larger than ${limits.imageManifestBytesMax} bytes.`;
    return new BerthError("too_large", message, { facts: { field: "reference" } });
  }

  #loginError(): BerthError {
    const remedy = "The operator can give one in the file that BERTH_ENGINE_REGISTRY_AUTH names.";
    return this.#refuse("forbidden", "asks for a login", remedy);
  }

  #refuse(
    code: "not_found" | "unavailable" | "forbidden" | "bad_archive",
    what: string,
    hint: string,
  ): BerthError {
    const message = `${this.#name}: The registry ${this.#reference.host} ${what}.`;
    return new BerthError(code, message, { hint, facts: { field: "reference" } });
  }
}

/** The part of an address after the repository. */
function path(url: string): string {
  return /\/((?:blobs|manifests)\/[^/]+)$/.exec(url)?.[1] ?? "";
}
