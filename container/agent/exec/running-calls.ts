/** The commands that callers wait for, by exec id, so that another request can end them. */
import { BerthError } from "../../../src/protocol/error-codes.ts";

export class RunningCalls {
  readonly #controllers = new Map<string, AbortController>();

  track(execId: string, controller: AbortController, ended: Promise<unknown>): void {
    this.#controllers.set(execId, controller);
    const forget = () => {
      if (this.#controllers.get(execId) === controller) this.#controllers.delete(execId);
    };
    ended.then(forget, forget);
  }

  /** True if the command runs or waits for its turn. Its tree has got SIGTERM when this returns. */
  cancel(execId: string): boolean {
    const controller = this.#controllers.get(execId);
    controller?.abort(
      new BerthError("operation_interrupted", "The call was cancelled; its command was ended.", {
        facts: { admitted: true, reason: "cancelled" },
      }),
    );
    return controller !== undefined;
  }
}
