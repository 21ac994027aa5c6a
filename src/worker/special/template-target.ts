/** The verbs of one template as RPC methods. */
import { RpcTarget } from "cloudflare:workers";
import type { TemplateApi } from "../../protocol/api.ts";
import type { TemplateLogInput } from "../../protocol/template.ts";
import type { VerbName } from "../../protocol/verbs.ts";
import type { TemplateCalls } from "./templates.ts";

export class TemplateTarget extends RpcTarget implements TemplateApi {
  readonly #calls: (name: VerbName) => TemplateCalls;

  /** `calls` runs for each call, so that the call itself fails for a missing right or an invalid name. */
  constructor(calls: (name: VerbName) => TemplateCalls) {
    super();
    this.#calls = calls;
  }

  async get(query: { waitMs?: number | undefined } = {}) {
    return this.#calls("getTemplate").get(query);
  }

  async log(query: TemplateLogInput = {}) {
    return this.#calls("readTemplateLog").log(query);
  }

  async cancel() {
    return this.#calls("cancelTemplateBuild").cancel();
  }

  async remove() {
    return this.#calls("removeTemplate").remove();
  }
}
