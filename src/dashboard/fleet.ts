/**
 * All sandboxes of the tenant, kept true by its events. The lists are read once; after that each event reads the
 * sandbox that it names, many events of one sandbox once. A gap in the events reads the lists again.
 */
import type { Berth, ListedSandbox, TenantEvent } from "../client/index.ts";
import type { Metrics } from "../protocol/metrics.ts";

export type Row = Pick<
  ListedSandbox,
  | "id"
  | "state"
  | "reason"
  | "createdAt"
  | "stateSince"
  | "scope"
  | "madeBy"
  | "image"
  | "metadata"
  | "onIdle"
  | "idleTimeoutMs"
> & {
  /** When the server last said all this. */
  stateAsOf?: string;
  lease?: { holder: string; expiresAt: string } | undefined;
  /** What it used in the last minutes, while a person sees the row. */
  usage?: Pick<Metrics, "metrics" | "limits"> | undefined;
};

const pageSize = 1000;
/** Events of this long are gathered before their sandboxes are read. */
const gatherMs = 250;
const readsMax = 8;
/** How many measurements a row shows: those of five minutes. */
const usageLength = 30;

export class Fleet {
  rows: readonly Row[] = [];
  isComplete = false;
  error: unknown;
  readonly #berth: Berth;
  readonly #changed: () => void;
  readonly #ended = new AbortController();
  readonly #byId = new Map<string, Row>();
  readonly #stale = new Set<string>();
  #seen: ReadonlySet<string> = new Set();
  /** The latest create that the lists showed: an earlier event of an unknown sandbox is of one that is gone. */
  #newest = "";
  #reading: Promise<void> | undefined;

  /** `changed` is called after each change of the fields. */
  constructor(berth: Berth, changed: () => void) {
    this.#berth = berth.with({ signal: this.#ended.signal });
    this.#changed = changed;
    void this.#run();
  }

  end(): void {
    this.#ended.abort();
  }

  /** Reads those in sight, because the lists show neither who holds a lease nor what a sandbox uses. */
  watch(ids: readonly string[]): void {
    this.#seen = new Set(ids);
    this.#refresh(ids);
  }

  #refresh(ids: Iterable<string>): void {
    for (const id of ids) this.#stale.add(id);
    this.#reading ??= this.#readStale().finally(() => {
      this.#reading = undefined;
    });
  }

  async #run(): Promise<void> {
    const { signal } = this.#ended;
    while (!signal.aborted) {
      try {
        await this.#readLists();
        // The stream begins with what is stored, so that no change falls between the lists and it.
        for await (const item of this.#berth.events()) {
          if (item.type === "event") this.#note(item);
          else if (item.after > 0) await this.#readLists();
        }
      } catch (error) {
        if (signal.aborted) return;
        this.error = error;
        this.#changed();
        await new Promise((resolve) => setTimeout(resolve, 3000));
      }
    }
  }

  #note(item: Extract<TenantEvent, { type: "event" }>): void {
    const { sandbox, event } = item;
    const row = this.#byId.get(sandbox);
    const known = row?.stateAsOf ?? row?.stateSince ?? this.#newest;
    if (item.at < known) return;
    if (event.type === "state" && event.state === "destroyed") {
      if (this.#byId.delete(sandbox)) this.#publish();
    } else if (event.type !== "state" || row?.state !== event.state) {
      this.#refresh([sandbox]);
    }
  }

  async #readLists(): Promise<void> {
    const seen = new Set<string>();
    let cursor: string | undefined;
    do {
      const page = await this.#berth.list({ limit: pageSize, cursor });
      for (const row of page) {
        seen.add(row.id);
        this.#byId.set(row.id, { ...this.#byId.get(row.id), ...row });
      }
      cursor = page.nextCursor ?? undefined;
      this.#publish();
    } while (cursor !== undefined);
    for (const [id, { createdAt }] of this.#byId) {
      if (!seen.has(id)) this.#byId.delete(id);
      else if (createdAt > this.#newest) this.#newest = createdAt;
    }
    this.isComplete = true;
    this.error = undefined;
    this.#publish();
  }

  async #readStale(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, gatherMs));
    while (this.#stale.size > 0 && !this.#ended.signal.aborted) {
      const ids = [...this.#stale].slice(0, readsMax);
      for (const id of ids) this.#stale.delete(id);
      await Promise.all(ids.map((id) => this.#read(id)));
      this.#publish();
    }
  }

  async #read(id: string): Promise<void> {
    try {
      const { info } = await this.#berth.get(id);
      if (info.state === "destroyed") return void this.#byId.delete(id);
      const { usage } = this.#byId.get(id) ?? {};
      this.#byId.set(id, { ...info, lease: info.lease, usage });
      if (info.state !== "running" || !this.#seen.has(id)) return;
      const read = await this.#berth.sandbox(id).metrics({ last: usageLength });
      this.#byId.set(id, { ...info, lease: info.lease, usage: read });
    } catch {
      // It is read again with its next event or while it is in sight.
    }
  }

  #publish(): void {
    this.rows = [...this.#byId.values()].sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
    this.#changed();
  }
}
