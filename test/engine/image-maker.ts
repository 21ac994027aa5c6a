/** Makes small images for tests, and serves them as a registry that can misbehave. */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { until } from "../until.ts";

/** A file by its text, a copy of a file of the machine, or a link. */
export type Entry = string | { bytes: Buffer } | { copy: string; mode?: number } | { link: string };

export type Packing = "gzip" | "zstd" | "none";

export type Blob = { digest: string; bytes: Buffer };

type Layer = Blob & { diffId: string };

export const digestOf = (bytes: string | Buffer) =>
  `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

/** The archive of a layer; names that begin with `.wh.` delete. */
export function tarOf(entries: Record<string, Entry>): Buffer {
  const folder = mkdtempSync(join(tmpdir(), "berth-layer-"));
  try {
    for (const [path, entry] of Object.entries(entries)) {
      const file = join(folder, path);
      mkdirSync(path.endsWith("/") ? file : dirname(file), { recursive: true });
      if (path.endsWith("/")) continue;
      if (typeof entry === "string") writeFileSync(file, entry);
      else if ("bytes" in entry) writeFileSync(file, entry.bytes);
      else if ("link" in entry) run("ln", "-s", entry.link, file);
      else run("install", "-m", (entry.mode ?? 0o755).toString(8), entry.copy, file);
    }
    return run(
      "tar",
      "--create",
      "--file=-",
      "--owner=0",
      "--group=0",
      "--mtime=@0",
      "--sort=name",
      "-C",
      folder,
      ".",
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export function layerOf(entries: Record<string, Entry>, packing: Packing = "gzip"): Layer {
  const tar = tarOf(entries);
  const bytes =
    packing === "gzip" ? gzipSync(tar) : packing === "zstd" ? zstdCompressSync(tar) : tar;
  return { digest: digestOf(bytes), bytes, diffId: digestOf(tar) };
}

export class TestRegistry {
  readonly blobs = new Map<string, Buffer>();
  /** By `repository:tag` or by digest. */
  readonly manifests = new Map<string, Buffer>();
  /** The requests, in order: path and range. */
  readonly requests: string[] = [];
  /** Sends so many bytes of a blob and no more, once for each entry. */
  readonly stops: number[] = [];
  /** Cuts the connections that were stopped. */
  readonly stopped: (() => void)[] = [];
  needsLogin = false;
  readonly #server = createServer((request, response) => this.#answer(request, response));

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  addBlob(bytes: Buffer): { digest: string; size: number } {
    const digest = digestOf(bytes);
    this.blobs.set(digest, bytes);
    return { digest, size: bytes.length };
  }

  /** Returns the digest of the manifest. */
  add(
    name: string,
    layers: Layer[],
    { architecture = process.arch === "x64" ? "amd64" : process.arch, config = {} } = {},
  ): string {
    const rootfs = { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) };
    const configText = JSON.stringify({ architecture, os: "linux", rootfs, config });
    for (const { digest, bytes } of layers) this.blobs.set(digest, bytes);
    const mediaType = "application/vnd.oci.image.layer.v1.tar";
    return this.addManifest(name, {
      schemaVersion: 2,
      config: { mediaType: "config", ...this.addBlob(Buffer.from(configText)) },
      layers: layers.map(({ digest, bytes }) => ({ mediaType, digest, size: bytes.length })),
    });
  }

  addManifest(name: string, manifest: object): string {
    const bytes = Buffer.from(JSON.stringify(manifest));
    this.manifests.set(name, bytes);
    this.manifests.set(digestOf(bytes), bytes);
    return digestOf(bytes);
  }

  #answer({ url = "", headers }: IncomingMessage, response: ServerResponse): void {
    this.requests.push(`${url} ${headers.range ?? ""}`.trim());
    if (this.needsLogin && headers.authorization !== `Basic ${btoa("me:secret")}`) {
      response.writeHead(401, { "www-authenticate": 'Basic realm="test"' }).end();
      return;
    }
    const [, repository = "", kind, name = ""] =
      /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(url) ?? [];
    const bytes =
      kind === "blobs"
        ? this.blobs.get(name)
        : (this.manifests.get(name) ?? this.manifests.get(`${repository}:${name}`));
    if (bytes === undefined) {
      response.writeHead(404).end();
      return;
    }
    const from = Number(/^bytes=(\d+)-$/.exec(headers.range ?? "")?.[1] ?? 0);
    response.writeHead(from > 0 ? 206 : 200, { "content-length": bytes.length - from });
    const stop = kind === "blobs" && bytes.length > bigBytes ? this.stops.shift() : undefined;
    if (stop === undefined) {
      response.end(bytes.subarray(from));
      return;
    }
    response.write(bytes.subarray(from, from + stop));
    this.stopped.push(() => response.destroy());
  }
}

/** Configurations are smaller. */
const bigBytes = 10_000;

export function hasProgram(name: string): boolean {
  return spawnSync("which", [name]).status === 0;
}

/** Debian's registry on a free port, with a folder of its own. */
export async function startRegistry() {
  const folder = mkdtempSync(join(tmpdir(), "berth-registry-"));
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(probe.address() as AddressInfo).port}`;
  await new Promise((resolve) => probe.close(resolve));
  const config = join(folder, "config.yml");
  const storage = { filesystem: { rootdirectory: join(folder, "data") } };
  writeFileSync(config, JSON.stringify({ version: 0.1, storage, http: { addr: host } }));
  const child = spawn("docker-registry", ["serve", config], { stdio: "ignore" });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  await until("the registry answers", () =>
    fetch(`http://${host}/v2/`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  return {
    host,
    /** Pushes what Docker would save. */
    push(saved: Buffer, name: string): void {
      const file = join(folder, "saved.tar");
      writeFileSync(file, saved);
      const policy = ["--insecure-policy", "copy", "--dest-tls-verify=false"];
      run("skopeo", ...policy, `docker-archive:${file}`, `docker://${host}/${name}`);
    },
    async [Symbol.asyncDispose](): Promise<void> {
      child.kill();
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function run(program: string, ...args: string[]): Buffer {
  const { status, stdout, stderr } = spawnSync(program, args, { maxBuffer: 1 << 28 });
  if (status !== 0) throw new Error(`${program} failed: ${stderr}`);
  return stdout;
}
