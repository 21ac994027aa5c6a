/** Templates: file trees that were built by steps, from which sandboxes start. */
import { limits } from "../protocol/limits.ts";
import type { Template as TemplateInfo, TemplateInput, TemplateLog } from "../protocol/template.ts";
import type { BerthCalls } from "./calls.ts";
import type { CallOptions } from "./http/request.ts";

/** Options of `templates.waitForBuild`. */
export type WaitForBuildOptions = CallOptions & {
  /** Gets the log as it is written. Default: it is not read. */
  onLog?: ((text: string) => void) | undefined;
};

/** Options of `templates.log`. */
export type TemplateLogOptions = CallOptions & {
  /** The `cursor` of an earlier part. Default: 0, the beginning. */
  after?: number | undefined;
  /** Milliseconds that the call may wait for more. Default: 0. */
  waitMs?: number | undefined;
};

/**
 * The templates of one key.
 *
 * @example
 * ```ts
 * await berth.templates.build({ name: "web", steps: [{ run: "npm ci" }] });
 * const { build } = await berth.templates.waitForBuild("web", { onLog: console.log });
 * if (build.state !== "ready") throw new Error(build.reason);
 * const sandbox = await berth.create({ template: "web" });
 * ```
 */
export class Templates {
  readonly #calls: BerthCalls;

  /** @internal */
  constructor(calls: BerthCalls) {
    this.#calls = calls;
  }

  /** Begins a build, and returns at once. */
  build(input: TemplateInput, options: CallOptions = {}): Promise<TemplateInfo> {
    return this.#calls.buildTemplate({ ...input, ...options });
  }

  /** Waits until the newest build has ended, however that takes; `signal` ends the wait. */
  async waitForBuild(
    reference: string,
    { onLog, ...options }: WaitForBuildOptions = {},
  ): Promise<TemplateInfo> {
    const template = this.#calls.template(reference);
    for (let after = 0, build = ""; ; ) {
      const part = await template.log({ after, waitMs: limits.waitMaxMs, ...options });
      // Another build may have begun meanwhile.
      after = build === "" || build === part.build ? part.cursor : 0;
      build = part.build;
      if (part.text !== "") onLog?.(part.text);
      if (part.ended) return template.get(options);
    }
  }

  /** A template with its newest build. */
  get(reference: string, options: CallOptions = {}): Promise<TemplateInfo> {
    return this.#calls.template(reference).get(options);
  }

  /** All templates, by name and tag. */
  async list(options: CallOptions = {}): Promise<TemplateInfo[]> {
    return (await this.#calls.templates(options)).templates;
  }

  /** A part of the log of the newest build. */
  log(reference: string, options: TemplateLogOptions = {}): Promise<TemplateLog> {
    return this.#calls.template(reference).log(options);
  }

  /** Cancels the build that runs. A version that was built earlier stays. */
  cancel(reference: string, options: CallOptions = {}): Promise<TemplateInfo> {
    return this.#calls.template(reference).cancel(options);
  }

  /** Removes a template. Sandboxes that were created from it keep their files. */
  delete(reference: string, options: CallOptions = {}): Promise<TemplateInfo> {
    return this.#calls.template(reference).remove(options);
  }
}
