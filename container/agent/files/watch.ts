/**
 * Owns one watch as a stream of server-sent events: `ready`, `change`, `overflow`, `gone`, and a comment in silence.
 * Does not own what is watched (watched-tree.ts) nor how changes are drawn together (changes.ts).
 */
import { limits } from "../../../src/protocol/limits.ts";
import { Inotify, type News, news } from "../kernel/inotify.ts";
import type { User } from "../kernel/libc.ts";
import { Changes } from "./changes.ts";
import type { Target } from "./paths.ts";
import { refusalOf } from "./refusal.ts";
import { inSlices } from "./slices.ts";
import { WatchedTree } from "./watched-tree.ts";

/** News of the kernel that wait for an earlier piece; beyond, they are as good as lost. */
const newsWaitingMax = 4 * limits.fileWatchEventsMax;

export class Watch {
  readonly #target: Target;
  readonly #user: User | undefined;
  readonly #changes = new Changes();
  readonly #inotify: Inotify;
  readonly #tree: WatchedTree;
  #waiting: News[] = [];
  #working = false;
  #gone = false;
  #closed: Promise<void> | undefined;
  /** Wakes whoever waits for something to tell. */
  #wake: () => void = () => {};

  constructor(target: Target, { user, recursive }: { user: User | undefined; recursive: boolean }) {
    this.#target = target;
    this.#user = user;
    this.#inotify = new Inotify((some) => this.#take(some));
    const parts = { recursive, inotify: this.#inotify, changes: this.#changes };
    this.#tree = new WatchedTree(target, parts);
  }

  /** Resolves when its descriptor is closed. */
  get ended(): Promise<void> {
    return this.#inotify.ended;
  }

  /** Everything is watched then. */
  async begin(): Promise<void> {
    this.#working = true;
    try {
      await inSlices(this.#user, this.#tree.begin());
    } catch (error) {
      await this.close();
      throw refusalOf(error, this.#target.shown);
    }
    this.#working = false;
    this.#work();
  }

  close(): Promise<void> {
    this.#closed ??= this.#inotify.close();
    this.#wake();
    return this.#closed;
  }

  /** Asked for as fast as its reader takes it; whoever cancels it closes the watch. */
  stream(): ReadableStream<Uint8Array> {
    const told = this.#tell();
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const { done, value } = await told.next();
          if (done) controller.close();
          else controller.enqueue(Buffer.from(value));
        },
        cancel: () => this.close(),
      },
      { highWaterMark: 0 },
    );
  }

  async *#tell(): AsyncGenerator<string, void> {
    yield event("ready", {});
    while (this.#closed === undefined) {
      if (this.#changes.isEmpty) {
        if (this.#gone) break;
        const news = await this.#news(limits.eventHeartbeatMs);
        if (!news) yield ":\n\n";
        continue;
      }
      // What follows at once belongs to it.
      await new Promise((resolve) => setTimeout(resolve, limits.fileWatchCoalesceMs));
      const { overflown, changes } = this.#changes.take();
      if (overflown) yield event("overflow", {});
      if (changes.length > 0) yield event("change", { changes });
    }
    if (this.#gone) yield event("gone", {});
    await this.close();
  }

  /** False: nothing came in this time. */
  #news(ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }

  #take(some: News[]): void {
    this.#waiting.push(...some);
    if (this.#waiting.length > newsWaitingMax) {
      this.#waiting = [{ watch: -1, what: news.overflow, name: "" }];
    }
    this.#work();
  }

  /** One piece after the other: a folder's names are read before the next news is looked at. */
  async #work(): Promise<void> {
    if (this.#working || this.#closed !== undefined) return;
    this.#working = true;
    try {
      while (this.#waiting.length > 0 && !this.#gone) {
        const some = this.#waiting;
        this.#waiting = [];
        this.#gone = await inSlices(this.#user, this.#follow(some));
        if (!this.#changes.isEmpty || this.#gone) this.#wake();
      }
    } catch {
      // The root cannot be read anymore: to its followers that is as if it had gone.
      this.#gone = true;
      this.#wake();
    }
    this.#working = false;
  }

  /** Whether the root has gone. */
  *#follow(some: News[]): Generator<undefined, boolean> {
    for (const one of some) {
      if (one.what & news.overflow) {
        // Folders may have been made among what was lost: watch all anew before telling to list anew.
        yield* this.#tree.begin();
        this.#changes.overflow();
      } else if (!(yield* this.#tree.follow(one))) return true;
      yield;
    }
    return false;
  }
}

function event(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
