/** The settings of a sandbox, and the services that they name. */
import type { Service } from "../../protocol/service.ts";
import type { SettingsPatch, Settings as Values } from "../../protocol/settings.ts";
import type { CallOptions } from "../http/request.ts";
import type { SandboxCalls } from "../verbs.ts";

/** What can be changed at any time: idle policy, environment, network, automatic checkpoints, services. */
export class Settings {
  readonly #calls: SandboxCalls;

  /** @internal */
  constructor(calls: SandboxCalls) {
    this.#calls = calls;
  }

  /** The settings and their version. */
  get(options: CallOptions = {}): Promise<Values> {
    return this.#calls.settings(options);
  }

  /**
   * Changes these settings in one step and keeps the others; `null` removes a limit. With `ifVersion` only if the version
   * is this one.
   *
   * @example
   * ```ts
   * await sandbox.settings.patch({ idleTimeoutMs: 60_000, env: { STAGE: "test" } });
   * ```
   */
  patch(values: SettingsPatch, options: CallOptions = {}): Promise<Values> {
    return this.#calls.patchSettings({ ...values, ...options });
  }

  /** The services in the order in which they start; none where no container runs. */
  async services(options: CallOptions = {}): Promise<Service[]> {
    return (await this.#calls.services(options)).services;
  }
}
