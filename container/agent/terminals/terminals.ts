/**
 * Owns the routes of terminals: what each call asks of the roster or of one terminal, and the form of the answers.
 * Does not own terminals.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { TerminalEnded, Terminals as TerminalsList } from "../../../src/protocol/terminal.ts";
import type { Ground } from "../sandbox.ts";
import { readJson } from "../server/body.ts";
import { fenceOf } from "../server/fence.ts";
import type { Part, PartCall } from "../server/module.ts";
import { connectViewer } from "./connect.ts";
import type { Drawer } from "./picture.ts";
import { readSize, readTerminalCall } from "./read-calls.ts";
import { Roster } from "./registry.ts";

type Answered = Promise<Response | undefined>;

export class Terminals implements Part {
  readonly #ground: Ground;
  readonly #roster: Roster;
  readonly #drawer: Drawer | undefined;

  constructor(ground: Ground, drawer?: Drawer) {
    const { place, forest, gated, endings } = ground;
    this.#ground = ground;
    this.#drawer = drawer;
    this.#roster = new Roster({ place, forest, drawer }, gated, endings);
  }

  get count(): number {
    return this.#roster.count;
  }

  get attached(): number {
    return this.#roster.terminals.reduce((sum, { audience }) => sum + audience.size, 0);
  }

  async endAll(): Promise<void> {
    await this.#roster.endAll();
    await this.#drawer?.close();
  }

  answer(call: PartCall): Answered {
    const [id, more, ...beyond] = call.rest;
    if (beyond.length === 0) {
      if (id === undefined)
        return oneOf(call, { POST: () => this.#open(call), GET: () => this.#list(call) });
      if (more === undefined) return this.#answerOne(call, id);
      if (more === "screen") return oneOf(call, { GET: () => this.#screen(id) });
      if (more === "connect") return oneOf(call, { GET: () => this.#connect(call, id) });
    }
    throw new BerthError("not_found", `the agent has no route ${call.url.pathname}`);
  }

  #answerOne(call: PartCall, id: string): Answered {
    return oneOf(call, {
      GET: async () => Response.json((await this.#roster.find(id)).record(call.incarnation)),
      PATCH: () => this.#resize(call, id),
      DELETE: () => this.#end(id),
    });
  }

  async #open({ request, incarnation }: PartCall): Answered {
    const fence = fenceOf(request.headers);
    // Once more when it begins (roster.ts); what comes too late already need not send its body.
    this.#ground.gated.fence.pass(fence);
    const call = readTerminalCall(await readJson(request));
    const begun = { fence, gone: new AbortController() };
    const { terminal, made } = await this.#roster.open(call, begun);
    return Response.json(terminal.record(incarnation), { status: made ? 201 : 200 });
  }

  async #list({ incarnation }: PartCall): Answered {
    const all = await this.#roster.all();
    const terminals = all.map((terminal) => terminal.record(incarnation));
    const list: TerminalsList = { terminals, nextCursor: null };
    return Response.json(list);
  }

  async #resize({ request, incarnation }: PartCall, id: string): Answered {
    const size = readSize(await readJson(request));
    const terminal = await this.#roster.find(id);
    terminal.resize(size);
    return Response.json(terminal.record(incarnation));
  }

  async #end(id: string): Answered {
    await (await this.#roster.find(id)).stop("ended");
    const ended: TerminalEnded = { id, ended: true };
    return Response.json(ended);
  }

  async #screen(id: string): Answered {
    const screen = await (await this.#roster.find(id)).look();
    if (screen !== undefined) return Response.json(screen);
    throw new BerthError("unavailable", `the screen of terminal ${id} could not be drawn in time`);
  }

  async #connect(call: PartCall, id: string): Answered {
    return connectViewer(call, await this.#roster.find(id), this.#ground);
  }
}

function oneOf({ request }: PartCall, methods: Record<string, () => Answered>): Answered {
  const method = methods[request.method];
  if (method !== undefined) return method();
  const allow = Object.keys(methods);
  throw new BerthError("method_not_allowed", `use ${allow.join(" or ")}`, { facts: { allow } });
}
