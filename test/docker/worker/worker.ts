/**
 * A Worker whose objects apply each call to their container: `POST /<object>/<method>` with JSON arguments;
 * `/<object>/agent/…` is forwarded to the agent. A failure responds with 500 and the error.
 */
import { DurableObject } from "cloudflare:workers";
import { chooseRuntime } from "../../../src/runtime/choose.ts";
import type { ContainerRuntime } from "../../../src/runtime/runtime.ts";

/** The other classes that the configuration names; the object below replaces one of them. */
export * from "../../../src/index.ts";

type Env = { SANDBOX: DurableObjectNamespace<SandboxObject> };

export class SandboxObject extends DurableObject {
  #runtime: ContainerRuntime | undefined;

  override async fetch(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const [, , verb = "", ...rest] = pathname.split("/");
    try {
      if (verb === "agent") {
        const call = new Request(`http://agent/${rest.join("/")}${search}`, request);
        return await this.#open().agent("", call);
      }
      const [argument] = (await request.json()) as [never];
      const value = await this.#apply(verb, argument);
      return Response.json({ value });
    } catch (error) {
      const { code, message, facts } = error as Error & { code?: string; facts?: object };
      const headers = { "berth-test-thrown": "true" };
      return Response.json({ thrown: { code, message, facts } }, { status: 500, headers });
    }
  }

  #apply(verb: string, argument: never): Promise<unknown> {
    const runtime = this.#open();
    switch (verb) {
      case "start":
        return runtime.start(argument);
      case "destroy":
        return runtime.destroy(argument);
      case "snapshot":
        return runtime.snapshot(argument);
      default:
        throw new Error(`no such verb: ${verb}`);
    }
  }

  #open(): ContainerRuntime {
    this.#runtime ??= chooseRuntime(this.ctx, undefined, "unused", { internet: false });
    return this.#runtime;
  }
}

export default {
  fetch(request, env) {
    const [, name = ""] = new URL(request.url).pathname.split("/");
    return env.SANDBOX.getByName(name).fetch(request);
  },
} satisfies ExportedHandler<Env>;
