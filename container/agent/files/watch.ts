/** Streams one watch as server-sent events: `ready`, `change`, `overflow`, `gone`, and keepalive comments. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { hasCode } from "../kernel/error-codes.ts";
import { FolderWatcher, type InotifyEvent, inotifyEvents } from "../kernel/inotify.ts";
import type { User } from "../kernel/libc.ts";
import {
  formatEvent,
  keepaliveComment,
  respondWithEvents,
  Wakeup,
} from "../server/event-stream.ts";
import { toFileError } from "./file-errors.ts";
import type { Target } from "./paths.ts";
import { inSlices } from "./slices.ts";
import { PendingChanges, WatchedTree } from "./watched-tree.ts";

/** Events of the kernel that wait for earlier ones. With more, the watch counts as overflown. */
const waitingEventsMax = 4 * limits.fileWatchEventsMax;

export class Watch {
  readonly #target: Target;
  readonly #user: User | undefined;
  readonly #changes = new PendingChanges();
  readonly #watcher: FolderWatcher;
  readonly #tree: WatchedTree;
  #waiting: InotifyEvent[] = [];
  #isWorking = false;
  #isGone = false;
  #isClosed = false;
  /** Wakes the stream when there is something to send. */
  readonly #wakeup = new Wakeup();

  constructor(target: Target, { user, recursive }: { user: User | undefined; recursive: boolean }) {
    this.#target = target;
    this.#user = user;
    this.#watcher = openWatcher((events) => this.#receive(events));
    const [watcher, changes] = [this.#watcher, this.#changes];
    this.#tree = new WatchedTree(target, { recursive, watcher, changes });
  }

  get ended(): Promise<void> {
    return this.#watcher.ended;
  }

  /** Resolves when everything is watched. */
  async begin(): Promise<void> {
    this.#isWorking = true;
    try {
      await inSlices(this.#user, this.#tree.begin());
    } catch (error) {
      await this.close();
      throw toFileError(error, this.#target.shown);
    }
    this.#isWorking = false;
    this.#work();
  }

  async close(): Promise<void> {
    if (!this.#isClosed) this.#watcher.close();
    this.#isClosed = true;
    this.#wakeup.wake();
  }

  /** Sends at the pace of the reader. Cancelling the stream closes the watch. */
  respond(): Response {
    return respondWithEvents(this.#events(), () => this.close());
  }

  async *#events(): AsyncGenerator<string, void> {
    yield formatEvent("ready", {});
    while (!this.#isClosed) {
      if (this.#changes.isEmpty) {
        if (this.#isGone) break;
        if (!(await this.#wakeup.wait(limits.eventHeartbeatMs))) yield keepaliveComment;
        continue;
      }
      // Changes that follow at once are sent together.
      await new Promise((resolve) => setTimeout(resolve, limits.fileWatchCoalesceMs));
      const { overflown, changes } = this.#changes.take();
      if (overflown) yield formatEvent("overflow", {});
      if (changes.length > 0) yield formatEvent("change", { changes });
    }
    if (this.#isGone) yield formatEvent("gone", {});
    await this.close();
  }

  #receive(events: InotifyEvent[]): void {
    this.#waiting.push(...events);
    if (this.#waiting.length > waitingEventsMax) {
      this.#waiting = [{ watch: -1, mask: inotifyEvents.overflow, name: "" }];
    }
    this.#work();
  }

  /** One event after the other: the names of a new folder are read before the next event is processed. */
  async #work(): Promise<void> {
    if (this.#isWorking || this.#isClosed) return;
    this.#isWorking = true;
    try {
      while (this.#waiting.length > 0 && !this.#isGone) {
        const events = this.#waiting;
        this.#waiting = [];
        this.#isGone = await inSlices(this.#user, this.#process(events));
        if (!this.#changes.isEmpty || this.#isGone) this.#wakeup.wake();
      }
    } catch {
      // The root cannot be read any more, which followers treat as if it were removed.
      this.#isGone = true;
      this.#wakeup.wake();
    }
    this.#isWorking = false;
  }

  /** Returns whether the root was removed. */
  *#process(events: InotifyEvent[]): Generator<undefined, boolean> {
    for (const next of events) {
      if (next.mask & inotifyEvents.overflow) {
        // Folders may have been made in the lost events, so everything is watched again before followers list again.
        yield* this.#tree.begin();
        this.#changes.overflow();
      } else if (!(yield* this.#tree.follow(next))) return true;
      yield;
    }
    return false;
  }
}

function openWatcher(take: (events: InotifyEvent[]) => void): FolderWatcher {
  try {
    return new FolderWatcher(take);
  } catch (error) {
    if (!hasCode(error, "EMFILE")) throw error;
    const message = "The kernel has no inotify instance left for the watches of this sandbox.";
    const hint = "End other watches, or raise `fs.inotify.max_user_instances` on the machine.";
    throw new BerthError("too_many", message, { hint });
  }
}
