/** Handles the routes of services: the settings that name them, their list, and the wait for a port. */
import type { AgentSettings } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Services as ServicesPage } from "../../../src/protocol/service.ts";
import type { Processes } from "../processes/processes.ts";
import type { SandboxDeps } from "../sandbox-deps.ts";
import { readJson } from "../server/body.ts";
import { type AgentModule, byMethod, type ModuleRequest } from "../server/module.ts";
import { Services } from "./services.ts";

/** JSON may write one byte as six; the rest is for names and the version. */
const bodyBytesMax = 8 * (limits.sandboxEnvBytesMax + limits.servicesBytesMax);

export class ServiceRoutes implements AgentModule {
  /** Their processes are counted. */
  readonly count = 0;
  readonly #deps: SandboxDeps;
  readonly #services: Services;
  #version = -1;

  constructor(deps: SandboxDeps, processes: Processes) {
    this.#deps = deps;
    this.#services = new Services({ ...deps, processes });
  }

  endAll(): Promise<void> {
    return this.#services.endAll();
  }

  handle(call: ModuleRequest): Promise<Response> | Response {
    if (call.rest[0] === "ready") return byMethod(call, { GET: () => this.#waitForPort(call) });
    return byMethod<Promise<Response> | Response>(call, {
      GET: () => this.#list(),
      PUT: () => this.#apply(call),
    });
  }

  #list(): Response {
    const page: ServicesPage = { services: this.#services.list(), nextCursor: null };
    return Response.json(page);
  }

  /** A request that was overtaken by a newer one changes nothing. */
  async #apply({ request, incarnation }: ModuleRequest): Promise<Response> {
    const { version, env, services } = await readJson<AgentSettings>(request, bodyBytesMax);
    if (version >= this.#version) {
      this.#version = version;
      this.#deps.sandboxEnv.env = env;
      if (services !== undefined) this.#services.apply(services, incarnation);
    }
    return Response.json({ version: this.#version });
  }

  async #waitForPort({ url }: ModuleRequest): Promise<Response> {
    const [port, waitMs] = ["port", "waitMs"].map((name) => Number(url.searchParams.get(name)));
    return Response.json({ ready: await this.#services.waitForPort(port ?? 0, waitMs ?? 0) });
  }
}
