/** Handles the routes of terminals. See connect.ts for the WebSocket of a viewer. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentTerminalCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type {
  TerminalEnded,
  TerminalSize,
  Terminals as TerminalsList,
} from "../../../src/protocol/terminal.ts";
import type { SandboxDeps } from "../sandbox-deps.ts";
import { readBytes, readJson } from "../server/body.ts";
import { readFence } from "../server/gated-work.ts";
import { type AgentModule, byMethod, type ModuleRequest } from "../server/module.ts";
import { connectViewer } from "./connect.ts";
import { TerminalRegistry } from "./registry.ts";
import type { Screens } from "./screen/screens.ts";

/** Undefined: the connection became a WebSocket. */
type RouteResult = Promise<Response | undefined>;

export class TerminalRoutes implements AgentModule {
  readonly #deps: SandboxDeps;
  readonly #registry: TerminalRegistry;
  readonly #screens: Screens;

  constructor(deps: SandboxDeps, screens: Screens) {
    const { sandboxEnv, supervisor, gated, exitEvents } = deps;
    this.#deps = deps;
    this.#screens = screens;
    this.#registry = new TerminalRegistry({ sandboxEnv, supervisor, screens }, gated, exitEvents);
  }

  get count(): number {
    return this.#registry.count;
  }

  get attached(): number {
    return this.#registry.terminals.reduce((sum, { viewers }) => sum + viewers.size, 0);
  }

  async endAll(): Promise<void> {
    await this.#registry.endAll();
    await this.#screens.close();
  }

  handle(call: ModuleRequest): RouteResult {
    const [id, part, ...rest] = call.rest;
    if (rest.length === 0) {
      if (id === undefined)
        return byMethod(call, { POST: () => this.#open(call), GET: () => this.#list(call) });
      if (part === undefined) return this.#handleOne(call, id);
      if (part === "screen") return byMethod(call, { GET: () => this.#screen(id) });
      if (part === "input") return byMethod(call, { POST: () => this.#write(call, id) });
      if (part === "connect") return byMethod(call, { GET: () => this.#connect(call, id) });
    }
    throw new BerthError("not_found", `The agent has no route ${call.url.pathname}.`);
  }

  #handleOne(call: ModuleRequest, id: string): RouteResult {
    return byMethod(call, {
      GET: async () => Response.json((await this.#registry.find(id)).record(call.incarnation)),
      PATCH: () => this.#resize(call, id),
      DELETE: () => this.#end(id),
    });
  }

  async #open({ request, incarnation }: ModuleRequest): RouteResult {
    const fence = readFence(request.headers);
    // The registry checks again; this check spares a stale call from sending its body.
    this.#deps.gated.fence.pass(fence);
    const call = await readJson<AgentTerminalCall>(request);
    const gatedCall = { fence, controller: new AbortController() };
    const { terminal, isNew } = await this.#registry.open(call, gatedCall);
    return Response.json(terminal.record(incarnation), { status: isNew ? 201 : 200 });
  }

  async #list({ incarnation }: ModuleRequest): RouteResult {
    const all = await this.#registry.list();
    const terminals = all.map((terminal) => terminal.record(incarnation));
    const list: TerminalsList = { terminals, nextCursor: null };
    return Response.json(list);
  }

  async #resize({ request, incarnation }: ModuleRequest, id: string): RouteResult {
    const size = await readJson<TerminalSize>(request);
    const terminal = await this.#registry.find(id);
    terminal.resize(size);
    return Response.json(terminal.record(incarnation));
  }

  async #write({ request, incarnation }: ModuleRequest, id: string): RouteResult {
    const bytes = await readBytes(request, limits.terminalInputBytesMax);
    const terminal = await this.#registry.find(id);
    if (terminal.writeInput(bytes)) return Response.json(terminal.record(incarnation));
    const limit = limits.terminalInputBytesMax;
    throw new BerthError(
      "too_large",
      `The program has not read what came before: nothing was typed.`,
      {
        hint: "Try again once the program reads.",
        facts: { bytesMax: limit },
      },
    );
  }

  async #end(id: string): RouteResult {
    await (await this.#registry.find(id)).stop("ended");
    const ended: TerminalEnded = { id, ended: true };
    return Response.json(ended);
  }

  async #screen(id: string): RouteResult {
    const screen = await (await this.#registry.find(id)).screenText();
    if (screen !== undefined) return Response.json(screen);
    throw new BerthError("unavailable", `The screen of terminal ${id} was not rendered in time.`);
  }

  async #connect(call: ModuleRequest, id: string): RouteResult {
    return connectViewer(call, await this.#registry.find(id), this.#deps);
  }
}
