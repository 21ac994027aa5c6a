/** What the engine does with images: pulls in the background, imports, lists, and the lower layers of a sandbox. */
import { BerthError } from "../../../src/protocol/errors.ts";
import type { Image } from "../../../src/protocol/image.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { log, messageOf } from "../log.ts";
import type { Machine } from "../machine.ts";
import type { DataFolders } from "../rootfs/folders.ts";
import type { Settings } from "../settings.ts";
import { lowersOf } from "./image-root.ts";
import { importImage } from "./import.ts";
import { type PullProgress, pullImage } from "./pull.ts";
import { ImageStore } from "./store.ts";

type Pull = { progress: PullProgress; over: Promise<void> };

export class Images {
  readonly store: ImageStore;
  readonly #folders: DataFolders;
  readonly #settings: Settings["images"];
  readonly #isRoot: boolean;
  readonly #pulls = new Map<string, Pull>();
  /** Why a pull failed, until it is repeated. */
  readonly #failures = new Map<string, BerthError>();
  readonly #closing = new AbortController();
  #imports = 0;

  constructor(folders: DataFolders, settings: Settings["images"], user: Machine["user"]) {
    this.#folders = folders;
    this.#settings = settings;
    this.#isRoot = user !== "mapped";
    this.store = new ImageStore(folders);
  }

  /** Starts a pull or joins the one that runs; returns when it is over, or after `waitMs`. */
  async pull(reference: string, waitMs: number): Promise<Image> {
    this.#refuseWithoutRoot();
    const running = this.#pulls.get(reference) ?? this.#start(reference);
    await Promise.race([running.over, Bun.sleep(waitMs)]);
    const failed = this.#failures.get(reference);
    if (failed !== undefined && !this.#pulls.has(reference)) throw failed;
    return this.find(reference);
  }

  async import(name: string, body: ReadableStream<Uint8Array>): Promise<Image> {
    this.#refuseWithoutRoot();
    this.#refuseWhenBusy();
    this.#imports += 1;
    try {
      await importImage(name, body, {
        ...{ store: this.store, folders: this.#folders },
        ...{ bytesMax: this.#settings.imageBytesMax, signal: this.#closing.signal },
      });
    } finally {
      this.#imports -= 1;
    }
    return this.store.view(name);
  }

  list(): Image[] {
    const ready = this.store.list().filter(({ reference }) => !this.#pulls.has(reference));
    const others = [...this.#pulls.keys(), ...this.#failures.keys()];
    const names = new Set(
      others.filter((name) => !ready.some(({ reference }) => reference === name)),
    );
    return [...ready, ...[...names].map((name) => this.find(name))];
  }

  find(reference: string): Image {
    const pull = this.#pulls.get(reference);
    if (pull !== undefined) return { reference, state: "pulling", ...pull.progress };
    const failed = this.#failures.get(reference);
    if (failed === undefined) return this.store.view(reference);
    return { reference, state: "failed", reason: failed.message, bytes: 0 };
  }

  remove(reference: string): Image {
    const image = this.find(reference);
    if (image.state === "pulling") {
      throw new BerthError("unavailable", `${reference} is being pulled.`, {
        hint: "Wait until the pull has ended.",
      });
    }
    this.#failures.delete(reference);
    if (image.state === "ready") this.store.unname(reference);
    return image;
  }

  /** The lower layers of a sandbox with this image; records that it stands on them. */
  lowers(id: string, digest: string, resolvConf: string): { root: string[]; usr: string[] } {
    this.store.use(id, digest);
    const image = this.store.find(digest);
    if (image === undefined) throw new Error(`the image ${digest} is gone`);
    return lowersOf(this.store, this.#folders, image, resolvConf);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled([...this.#pulls.values()].map(({ over }) => over));
  }

  #start(reference: string): Pull {
    this.#refuseWhenBusy();
    this.#failures.delete(reference);
    const progress = { bytes: 0, bytesTotal: 0 };
    const { signal } = this.#closing;
    const over = pullImage(reference, {
      store: this.store,
      settings: this.#settings,
      progress,
      signal,
    })
      .catch((error: unknown) => this.#remember(reference, error))
      .finally(() => this.#pulls.delete(reference));
    const pull = { progress, over };
    this.#pulls.set(reference, pull);
    return pull;
  }

  #remember(reference: string, error: unknown): void {
    log("pull_failed", { reference, why: messageOf(error) });
    const known =
      error instanceof BerthError
        ? error
        : new BerthError("internal", `${reference}: The pull failed: ${messageOf(error)}`);
    this.#failures.set(reference, known);
    const [oldest] = this.#failures.keys();
    if (this.#failures.size > limits.imageFailuresMax && oldest !== undefined)
      this.#failures.delete(oldest);
  }

  #refuseWhenBusy(): void {
    if (this.#pulls.size + this.#imports < limits.imagePullsMax) return;
    throw new BerthError("too_many", `${limits.imagePullsMax} pulls and imports run already.`, {
      hint: "Wait until one of them has ended.",
    });
  }

  #refuseWithoutRoot(): void {
    if (this.#isRoot) return;
    throw new BerthError("unsupported", "Images need an engine that runs as root.", {
      hint: "The files of an image belong to several users, which an ordinary user cannot make.",
    });
  }
}
