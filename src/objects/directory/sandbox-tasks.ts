/** Calls sandboxes for the Directory. A stored task is repeated until it is done, by a waiting call or the alarm. */
import type { Report } from "../../protocol/directory.ts";
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { LeaseClaim, NewSandbox, Successor } from "../sandbox/lifecycle/lifecycle.ts";
import { BackgroundTasks } from "../shared/background.ts";
import type { ObjectHost } from "../shared/host.ts";
import { RecentRefusals } from "../shared/recent-refusals.ts";
import {
  type ErrorValue,
  messageOf,
  type Result,
  toBerthError,
  toResult,
} from "../shared/result.ts";
import { withTimeout } from "../shared/timeout.ts";
import { runningBefore, staleSandboxes } from "./list.ts";
import {
  deferTry,
  deleteSandbox,
  dueSandboxes,
  restoreScope,
  rowOf,
  type SandboxRow,
  toKnownSandbox,
} from "./rows.ts";

/** What the Directory needs from a sandbox's object. */
export interface SandboxPort {
  /** Creates the sandbox, or finds it created; refuses what is not available here. */
  make(call: NewSandbox): Promise<Result<Report>>;
  /** Undefined if the sandbox never existed or was forgotten. */
  report(): Promise<Report | undefined>;
  /** Destroys the sandbox unless somebody else holds its lease. Undefined if the sandbox does not exist. */
  giveWay(to: Successor, claim: LeaseClaim): Promise<Result<Report> | undefined>;
}

/** How long a list waits for sandboxes of an earlier run of the server. */
const earlierRunWaitMs = 1_000;

type TaskListener = {
  applyReport(report: Report): void;
  /** A task has ended, so the next deadline may be another one. */
  rearm(): void;
};

export class SandboxTasks {
  readonly #host: ObjectHost;
  readonly #sandboxOf: (id: string) => SandboxPort;
  readonly #listener: TaskListener;
  readonly #tasks: BackgroundTasks;
  readonly #refusals: RecentRefusals;
  /** The last sandbox that was probed because its row looked outdated: the next probes start after it. */
  #probedTo = "";
  #earlierRun: Promise<void> | undefined;

  constructor(host: ObjectHost, sandboxOf: (id: string) => SandboxPort, listener: TaskListener) {
    this.#host = host;
    this.#sandboxOf = sandboxOf;
    this.#listener = listener;
    this.#tasks = new BackgroundTasks(host);
    this.#refusals = new RecentRefusals(host);
  }

  /** Returns when the sandbox's object has it, or why it never will. Throws if the alarm has to try again. */
  async ensureMade(id: string, claim?: LeaseClaim): Promise<BerthError | undefined> {
    if (rowOf(this.#host, id)?.phase !== "creating") return undefined;
    await this.#create(id, claim);
    const refused = this.#refusals.get(id);
    if (refused !== undefined) return toBerthError(refused);
    if (rowOf(this.#host, id)?.phase !== "creating") return undefined;
    throw new BerthError("unavailable", "The sandbox is not created yet.", {
      hint: "Repeat the call with the same scope or Idempotency-Key to get the same sandbox.",
      facts: { sandbox: id },
    });
  }

  /** Updates the row from the sandbox itself. True if the sandbox exists and is not ending. */
  async probe(id: string): Promise<boolean> {
    const report = await this.#withTimeout(this.#sandboxOf(id).report());
    if (report === undefined) deleteSandbox(this.#host, id);
    else this.#listener.applyReport(report);
    return toKnownSandbox(rowOf(this.#host, id))?.isEnding === false;
  }

  /** Probes sandboxes whose rows look outdated, in the background. */
  probeStale(): void {
    const freeSlots = limits.staleProbesMax - this.#tasks.withPrefix("probe ").length;
    if (freeSlots <= 0) return;
    for (const id of staleSandboxes(this.#host, this.#host.clock(), this.#probedTo, freeSlots)) {
      this.#probedTo = id;
      void this.#start(`probe ${id}`, () => this.probe(id));
    }
  }

  /** Probes sandboxes that were reported as running before then, a few at once. Waits for that a moment. */
  async probeRunningSince(startedAt: number): Promise<void> {
    this.#earlierRun ??= this.#start("earlier run", async () => {
      const ids = runningBefore(this.#host, startedAt);
      const lane = async () => {
        for (let id = ids.pop(); id !== undefined; id = ids.pop()) {
          await this.probe(id).catch(() => undefined);
        }
      };
      await Promise.all(Array.from({ length: limits.staleProbesMax }, lane));
    });
    await withTimeout(this.#host, this.#earlierRun, earlierRunWaitMs).catch(() => undefined);
  }

  /** Called before a new try, so that its callers do not get the reason of the last one. */
  forgetRefusal(id: string): void {
    this.#refusals.forget(id);
  }

  /** Starts the tasks that are due and waits for them a moment. */
  async alarm(): Promise<void> {
    for (const id of dueSandboxes(this.#host, this.#host.clock())) void this.#create(id);
    await this.#tasks.settle();
  }

  /** Never rejects. */
  #create(id: string, claim: LeaseClaim = {}): Promise<void> {
    const row = rowOf(this.#host, id);
    if (row !== undefined) deferTry(this.#host, row, this.#host.clock());
    return this.#start(id, async () => {
      const row = rowOf(this.#host, id);
      if (row?.phase !== "creating") return;
      await this.#host.flush();
      const call = JSON.parse(row.call ?? "") as NewSandbox;
      const refused = await this.#endReplaced(row, call, claim);
      if (refused === undefined) await this.#make(id, call);
      else this.#giveUp(id, refused);
    });
  }

  /**
   * Returns why the replaced sandbox could not be ended. No response is such a reason, too: the alarm must not end a sandbox
   * long after the caller got an error. If it has ended nevertheless, the next call for the scope finds that.
   */
  async #endReplaced(
    { replaces }: SandboxRow,
    { spec }: NewSandbox,
    claim: LeaseClaim,
  ): Promise<ErrorValue | undefined> {
    if (replaces === null) return undefined;
    if (toKnownSandbox(rowOf(this.#host, replaces))?.isEnding !== false) return undefined;
    const giveWay = this.#sandboxOf(replaces).giveWay({ network: spec.network }, claim);
    const given = await toResult(() => this.#withTimeout(giveWay));
    const result = "ok" in given ? given.ok : given;
    if (result === undefined) deleteSandbox(this.#host, replaces);
    else if ("refused" in result) return result.refused;
    else this.#listener.applyReport(result.ok);
    // On disk before the successor is created: after a crash in between, the next call for the scope replaces the ended one.
    await this.#host.flush();
    return undefined;
  }

  async #make(id: string, call: NewSandbox): Promise<void> {
    const made = await this.#withTimeout(this.#sandboxOf(id).make(call));
    if ("ok" in made) this.#listener.applyReport(made.ok);
    else this.#giveUp(id, made.refused);
  }

  /** Deletes the row as if the sandbox had never been decided; waiting calls get the reason. */
  #giveUp(id: string, reason: ErrorValue): void {
    const row = rowOf(this.#host, id);
    if (row === undefined) return;
    this.#refusals.remember(id, reason);
    this.#host.transaction(() => {
      deleteSandbox(this.#host, id);
      restoreScope(this.#host, row);
    });
  }

  /** A late result is dropped: the call is repeated, or the sandbox reports by itself. */
  async #withTimeout<T>(call: Promise<T>): Promise<T> {
    try {
      return await withTimeout(this.#host, call);
    } catch (error) {
      throw new BerthError("unavailable", `The sandbox does not respond: ${messageOf(error)}`, {
        hint: "Try again in a moment.",
      });
    }
  }

  #start(key: string, work: () => Promise<unknown>): Promise<void> {
    return this.#tasks.start(key, () =>
      work()
        .then(() => undefined)
        .catch((error: unknown) =>
          this.#host.log({ sandbox: key, failed: "directory", message: messageOf(error) }),
        )
        .finally(() => this.#listener.rearm()),
    );
  }
}
