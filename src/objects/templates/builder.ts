/** Does what a build needs next, and returns what came of it; the actor commits that. Throws where it must be repeated. */
import type { Build, BuildEvent } from "../../core/template/build.ts";
import { asBerthError, BerthError, errors } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { ObjectHost } from "../shared/host.ts";
import { messageOf, toBerthError } from "../shared/result.ts";
import { sleep } from "../shared/timeout.ts";
import type { BuilderPort, StoredTree, TemplatePorts } from "./ports.ts";
import { type BuildJob, readJob } from "./rows.ts";

/** What is committed together. */
export type BuildChange = { event: BuildEvent; log?: string; stored?: StoredTree };

type Context = { build: Build; job: BuildJob; builder: BuilderPort };

/** One instance of the object works on one build: what it remembers is only for better text and fewer failures. */
export class Builder {
  readonly #host: ObjectHost;
  readonly #ports: TemplatePorts;
  #tries = 0;
  /** A character may be cut between two parts of the output. */
  #decoder = new TextDecoder();

  constructor(host: ObjectHost, ports: TemplatePorts) {
    this.#host = host;
    this.#ports = ports;
  }

  /** Undefined: nothing has changed, or a passing failure. */
  async act(build: Build, job: BuildJob): Promise<BuildChange | undefined> {
    const { tenant } = job.make.spec;
    const builder = this.#ports.builderOf({ tenant, sandbox: build.sandbox });
    try {
      const change = await this.#act({ build, job, builder });
      this.#tries = 0;
      return change;
    } catch (error) {
      return await this.#fail(build, error);
    }
  }

  async #act(context: Context): Promise<BuildChange | undefined> {
    const { build, builder } = context;
    const { state } = build;
    if (state.name === "starting") return this.#start(context);
    if (state.name === "running") return this.#run(context);
    if (state.name !== "saving") return undefined;
    const { handle } = state;
    if (handle === undefined) {
      return { event: { type: "saving", handle: `t${this.#host.randomId(23)}` } };
    }
    const stored = await builder.save(handle);
    const log = `saved ${stored.bytes} bytes\n`;
    return { event: { type: "saved", handle }, stored, log };
  }

  async #start({ job, builder }: Context): Promise<BuildChange | undefined> {
    const made = await this.#ports.make(job.make);
    if ("refused" in made) {
      const { refused } = made;
      if (!errors[refused.code].retryable) return failed(refused.message);
      throw toBerthError(refused);
    }
    const { state, reason, message } = await builder.waitUntilStarted(limits.templateLogEveryMs);
    if (state === "starting") return undefined;
    if (state === "running") return { event: { type: "started" } };
    const why = message ?? reason ?? state;
    return failed(`The sandbox of the build did not start: ${why}.`);
  }

  async #run({ build, job, builder }: Context): Promise<BuildChange | undefined> {
    const { done, state } = build;
    const action = readJob(job).actions[done];
    if (action === undefined || state.name !== "running") return undefined;
    if (state.process === undefined) {
      const id = await builder.start(action, `${build.id}.${done}`);
      this.#decoder = new TextDecoder();
      const log = `[${done + 1}/${build.actions}] ${action.label}\n`;
      return { event: { type: "process", action: done, id }, log };
    }
    await builder.waitForExit(state.process, limits.templateLogEveryMs);
    const { pieces, cursor, end } = await builder.readOutput(state.process, state.cursor);
    const log = pieces.map((piece) => this.#decoder.decode(piece, { stream: true })).join("");
    if (end === undefined) return { event: { type: "output", action: done, cursor }, log };
    return { event: { type: "exited", action: done, label: action.label, end }, log };
  }

  async #fail(build: Build, error: unknown): Promise<BuildChange | undefined> {
    const known = asBerthError(error);
    this.#tries += 1;
    // A sandbox whose object ended during a save removes the half tree and its handle; another one can be saved.
    const isHandleGone = build.state.name === "saving" && known?.code === "not_found";
    const passes = known === undefined || errors[known.code].retryable || isHandleGone;
    if (!passes || this.#tries >= limits.templateTriesMax) return failed(reasonOf(build, error));
    this.#host.log({ build: build.id, failed: build.state.name, message: messageOf(error) });
    await sleep(this.#host, limits.templateRetryMs);
    const { state } = build;
    // A save without a result may still write its tree, so the next one has another handle.
    return state.name === "saving" && state.handle !== undefined
      ? { event: { type: "not_saved", handle: state.handle } }
      : undefined;
  }
}

function failed(reason: string): BuildChange {
  return { event: { type: "failed", reason } };
}

const whatFailed = {
  starting: "The sandbox of the build did not start",
  running: "The sandbox of the build was lost",
  saving: "The files could not be saved",
} as Record<string, string>;

function reasonOf({ state }: Build, error: unknown): string {
  if (error instanceof BerthError && error.code === "bad_request") return error.message;
  return `${whatFailed[state.name] ?? "The build failed"}: ${messageOf(error)}`;
}
