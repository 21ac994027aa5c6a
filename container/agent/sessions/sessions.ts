/**
 * Owns which sessions there are: one for each id, made once, ended once, and how the ended ones went.
 * Does not own what happens in one (session.ts), nor HTTP (part.ts).
 */
import { join } from "node:path";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentSessionCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { environmentOf, folderOf } from "../exec/sandbox-env.ts";
import type { Ground } from "../sandbox.ts";
import type { Begun } from "../server/gated-work.ts";
import { within } from "../server/timeout.ts";
import { reasonOf } from "./command.ts";
import { Folder } from "./folder.ts";
import { Session } from "./session.ts";
import { Shell } from "./shell.ts";
import { type Termination, terminated } from "./termination.ts";

/** Its start is shared by all who ask for it meanwhile. */
type Entry = { starting: Promise<Session>; session?: Session };

export class Sessions {
  readonly ground: Ground;
  readonly folder: Folder;
  /** In the order of their making; until nothing of a session is left. */
  readonly #entries = new Map<string, Entry>();
  /** Oldest first. */
  readonly #ended = new Map<string, Termination>();

  constructor(ground: Ground) {
    this.ground = ground;
    this.folder = new Folder(join(ground.metadata.folder, "sessions"), ground.place.user);
  }

  get count(): number {
    return this.#entries.size;
  }

  /** Those that can be used, newest first. */
  all(): Session[] {
    return [...this.#entries.values()]
      .flatMap(({ session }) => (session === undefined || session.isEnding ? [] : [session]))
      .reverse();
  }

  /** Waits for one that is being made. */
  async get(id: string): Promise<Session> {
    const entry = this.#entries.get(id);
    if (entry !== undefined) {
      const session = await entry.starting;
      await session.demandAlive();
      return session;
    }
    const termination = this.#ended.get(id);
    if (termination !== undefined) throw terminated(id, termination);
    throw new BerthError("not_found", "no session with this id is known here", {
      hint: "POST …/sessions makes one, GET …/sessions lists them",
    });
  }

  /**
   * Gets or makes. Synchronous from the look at the fence until its start is among the gated work: between them
   * nobody can raise the fence, nor ask for the same id. An ending one is waited for, and the fence looked at again.
   */
  async open(call: AgentSessionCall, begun: Begun): Promise<{ session: Session; isNew: boolean }> {
    for (;;) {
      this.ground.gated.fence.pass(begun.fence);
      const entry = this.#entries.get(call.id);
      if (entry === undefined) return { session: await this.#make(call, begun), isNew: true };
      const session = await entry.starting;
      if (!session.isEnding) return { session, isNew: false };
      await session.over;
    }
  }

  /** Resolves when nothing of it is left. One that has ended may be ended again. */
  async end(id: string): Promise<void> {
    const entry = this.#entries.get(id);
    if (entry !== undefined) await (await entry.starting).end("ended");
    else if (!this.#ended.has(id)) await this.get(id);
  }

  async endAll(): Promise<void> {
    const starting = [...this.#entries.values()].map((entry) => entry.starting);
    await Promise.allSettled(starting.map(async (one) => (await one).end("ended")));
  }

  #make(call: AgentSessionCall, begun: Begun): Promise<Session> {
    const { gated, place } = this.ground;
    if (this.#entries.size >= limits.sessionsMax) throw tooMany();
    const cwd = folderOf(place, call.cwd);
    const starting = this.#start(call, cwd, begun.gone.signal);
    const entry: Entry = { starting };
    this.#entries.set(call.id, entry);
    const started = starting.then(
      (session) => {
        entry.session = session;
        session.over.then((termination) => this.#forget(session, termination));
      },
      () => {
        this.#entries.delete(call.id);
      },
    );
    gated.track(started, begun);
    return starting;
  }

  async #start(call: AgentSessionCall, cwd: string, gone: AbortSignal): Promise<Session> {
    const { place, forest } = this.ground;
    const env = environmentOf(place, call.env);
    const shell = await Shell.start({ forest, user: place.user, cwd, env });
    const session = new Session(call, shell, cwd);
    const isReady = await Promise.race([
      within(shell.ready, limits.sessionReadyMs),
      session.over.then(() => false),
      aborted(gone),
    ]);
    if (isReady) {
      this.#ended.delete(call.id);
      return session;
    }
    await session.end(reasonOf(gone));
    if (gone.reason instanceof BerthError) throw gone.reason;
    throw new BerthError("unavailable", `the shell of session ${call.id} did not become ready`, {
      hint: "BASH_ENV and other variables that a shell reads may keep it from starting",
    });
  }

  #forget(session: Session, termination: Termination): void {
    const { id } = session;
    const { exitCode, signal, reason } = termination;
    this.#entries.delete(id);
    this.#ended.set(id, termination);
    const [oldest] = this.#ended.keys();
    if (this.#ended.size > limits.sessionsEndedMax && oldest !== undefined) {
      this.#ended.delete(oldest);
    }
    this.ground.endings.add({ kind: "session", id, exitCode, signal, reason });
  }
}

/** False, when it is. */
function aborted(gone: AbortSignal): Promise<false> {
  return new Promise((resolve) => {
    if (gone.aborted) resolve(false);
    gone.addEventListener("abort", () => resolve(false), { once: true });
  });
}

function tooMany(): BerthError {
  return new BerthError("too_many", `there are ${limits.sessionsMax} sessions already`, {
    hint: "end one of them first",
    facts: { limit: limits.sessionsMax },
  });
}
