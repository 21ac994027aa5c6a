/** Keeps the sessions by id, creates and ends each once, and remembers how the last ones ended. */
import { join } from "node:path";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentSessionCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { buildEnvironment, resolveCwd, type SandboxEnv } from "../exec/sandbox-env.ts";
import { asUser } from "../exec/users.ts";
import type { SandboxDeps } from "../sandbox-deps.ts";
import type { GatedCall } from "../server/gated-work.ts";
import { resolvesWithin } from "../server/timeout.ts";
import { endReason } from "./command.ts";
import { SessionFolder } from "./folder.ts";
import { Session, sessionTerminated, type Termination } from "./session.ts";
import { Shell } from "./shell.ts";

/** Concurrent calls for one id share its start. */
type Entry = { starting: Promise<Session>; session?: Session };

export class Sessions {
  readonly deps: SandboxDeps;
  readonly folder: SessionFolder;
  /** Oldest first; an entry stays until nothing of its session is left. */
  readonly #entries = new Map<string, Entry>();
  /** Oldest first. */
  readonly #ended = new Map<string, Termination>();

  constructor(deps: SandboxDeps) {
    this.deps = deps;
    this.folder = new SessionFolder(
      join(deps.metadataCopy.folder, "sessions"),
      deps.sandboxEnv.user,
    );
  }

  get count(): number {
    return this.#entries.size;
  }

  /** The sessions that can be used, newest first. */
  list(): Session[] {
    return [...this.#entries.values()]
      .flatMap(({ session }) => (session === undefined || session.isEnding ? [] : [session]))
      .reverse();
  }

  /** Waits for a session that is starting. */
  async get(id: string): Promise<Session> {
    const entry = this.#entries.get(id);
    if (entry !== undefined) {
      const session = await entry.starting;
      await session.requireAlive();
      return session;
    }
    const termination = this.#ended.get(id);
    if (termination !== undefined) throw sessionTerminated(id, termination);
    throw new BerthError("not_found", "There is no session with this id.", {
      hint: "POST …/sessions creates one, GET …/sessions lists them.",
    });
  }

  /**
   * Gets or creates. Synchronous from the check of the fence until the start is tracked as gated work, so that nothing
   * can raise the fence or use the same id in between. It waits for a session that is ending, then checks again.
   */
  async open(
    call: AgentSessionCall,
    gatedCall: GatedCall,
  ): Promise<{ session: Session; isNew: boolean }> {
    for (;;) {
      this.deps.gated.fence.pass(gatedCall.fence);
      const entry = this.#entries.get(call.id);
      if (entry === undefined) return { session: await this.#create(call, gatedCall), isNew: true };
      const session = await entry.starting;
      if (!session.isEnding) return { session, isNew: false };
      await session.over;
    }
  }

  /** Resolves when nothing of it is left. Ending an ended session again succeeds. */
  async end(id: string): Promise<void> {
    const entry = this.#entries.get(id);
    if (entry !== undefined) await (await entry.starting).end("ended");
    else if (!this.#ended.has(id)) await this.get(id);
  }

  async endAll(): Promise<void> {
    const starting = [...this.#entries.values()].map((entry) => entry.starting);
    await Promise.allSettled(starting.map(async (session) => (await session).end("ended")));
  }

  #create(call: AgentSessionCall, gatedCall: GatedCall): Promise<Session> {
    const { gated } = this.deps;
    if (this.#entries.size >= limits.sessionsMax) throw tooMany();
    const sandboxEnv = asUser(this.deps.sandboxEnv, call.user);
    const cwd = resolveCwd(sandboxEnv, call.cwd);
    const starting = this.#start(call, { sandboxEnv, cwd }, gatedCall.controller.signal);
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
    gated.track(started, gatedCall);
    return starting;
  }

  async #start(
    call: AgentSessionCall,
    { sandboxEnv, cwd }: { sandboxEnv: SandboxEnv; cwd: string },
    signal: AbortSignal,
  ): Promise<Session> {
    const { supervisor } = this.deps;
    const env = buildEnvironment(sandboxEnv, call.env);
    const { user, groups } = sandboxEnv;
    const shell = await Shell.start({ supervisor, user, groups, cwd, env });
    const session = new Session(call, shell, { sandboxEnv, cwd });
    const isReady = await Promise.race([
      resolvesWithin(shell.ready, limits.sessionReadyMs),
      session.over.then(() => false),
      falseOnAbort(signal),
    ]);
    if (isReady) {
      this.#ended.delete(call.id);
      return session;
    }
    await session.end(endReason(signal));
    if (signal.reason instanceof BerthError) throw signal.reason;
    throw new BerthError("unavailable", `The shell of session ${call.id} did not become ready.`, {
      hint: "BASH_ENV and other variables that a shell reads may keep it from starting.",
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
    this.deps.exitEvents.add({ kind: "session", id, exitCode, signal, reason });
  }
}

function falseOnAbort(signal: AbortSignal): Promise<false> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(false);
    signal.addEventListener("abort", () => resolve(false), { once: true });
  });
}

function tooMany(): BerthError {
  return new BerthError("too_many", `There are ${limits.sessionsMax} sessions already.`, {
    hint: "End one of them first.",
    facts: { limit: limits.sessionsMax },
  });
}
