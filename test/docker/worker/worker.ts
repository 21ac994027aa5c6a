/**
 * Owns a Worker whose objects do with their container what they are told, and nothing of their own: the seam alone.
 * `POST /<object>/<verb>` with JSON; `/<object>/agent/…` is passed on. What fails answers 500 with the error.
 */
import { DurableObject } from "cloudflare:workers";
import { openContainer } from "../../../src/runtime/choose.ts";
import type { Container } from "../../../src/runtime/runtime.ts";

/** The other classes, which the configuration names; the object below takes the place of one of them. */
export * from "../../../src/index.ts";

type Env = { SANDBOX: DurableObjectNamespace<SandboxObject> };

export class SandboxObject extends DurableObject {
  #container: Container | undefined;

  override async fetch(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const [, , verb = "", ...rest] = pathname.split("/");
    try {
      if (verb === "agent") {
        const call = new Request(`http://agent/${rest.join("/")}${search}`, request);
        return await this.#opened().agent("", call);
      }
      const [argument] = (await request.json()) as [never];
      const value = await this.#told(verb, argument);
      return Response.json({ value });
    } catch (error) {
      const { code, message, facts } = error as Error & { code?: string; facts?: object };
      const headers = { "berth-test-thrown": "true" };
      return Response.json({ thrown: { code, message, facts } }, { status: 500, headers });
    }
  }

  #told(verb: string, argument: never): Promise<unknown> {
    const container = this.#opened();
    switch (verb) {
      case "start":
        return container.start(argument);
      case "destroy":
        return container.destroy(argument);
      case "snapshot":
        return container.snapshot(argument);
      default:
        throw new Error(`no such verb: ${verb}`);
    }
  }

  #opened(): Container {
    this.#container ??= openContainer(this.ctx, undefined, "unused", { internet: false });
    return this.#container;
  }
}

export default {
  fetch(request, env) {
    const [, name = ""] = new URL(request.url).pathname.split("/");
    return env.SANDBOX.getByName(name).fetch(request);
  },
} satisfies ExportedHandler<Env>;
