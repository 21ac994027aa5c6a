/**
 * Owns which call of the file routes does what. Loaded when the first one comes: many sandboxes never see one.
 * Does not own any of them.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { withRightsOf } from "../kernel/libc.ts";
import type { Ground } from "../sandbox.ts";
import { readJson } from "../server/body.ts";
import type { PartCall } from "../server/module.ts";
import { readMkdirCall, readMoveCall } from "./calls.ts";
import { conditionsOf } from "./conditions.ts";
import { download } from "./download.ts";
import { mkdir } from "./folders.ts";
import { inTurn } from "./gated-write.ts";
import { list } from "./list.ts";
import { move } from "./move.ts";
import { type Target, targetOf } from "./paths.ts";
import {
  readFileQuery,
  readListQuery,
  readPutQuery,
  readRemoveQuery,
  readWatchQuery,
} from "./query.ts";
import { Readers } from "./readers.ts";
import { refusalOf } from "./refusal.ts";
import { remove } from "./remove.ts";
import type { Sessions } from "./sessions.ts";
import { baseOf } from "./sessions.ts";
import { inSlices } from "./slices.ts";
import { stat } from "./stat.ts";
import { type Transfers, tooMany } from "./transfers.ts";
import { upload } from "./upload.ts";
import { Watch } from "./watch.ts";

type Route = (call: PartCall) => Promise<Response> | Response;

export class FileRoutes {
  readonly #ground: Ground;
  readonly #sessions: () => Sessions | undefined;
  readonly #transfers: Transfers;
  readonly #readers: Readers;
  readonly #watches = new Set<Watch>();

  readonly #routes: Record<string, Record<string, Route>> = {
    "": {
      GET: (call) => this.#download(call),
      PUT: (call) => this.#bounded(() => this.#upload(call)),
      DELETE: (call) => this.#bounded(() => this.#remove(call)),
    },
    stat: { GET: (call) => this.#stat(call) },
    list: { GET: (call) => this.#bounded(() => this.#list(call)) },
    watch: { GET: (call) => this.#watch(call) },
    mkdir: { POST: (call) => this.#mkdir(call) },
    move: { POST: (call) => this.#move(call) },
  };

  constructor(ground: Ground, transfers: Transfers, sessions: () => Sessions | undefined) {
    this.#ground = ground;
    this.#transfers = transfers;
    this.#readers = new Readers(transfers);
    this.#sessions = sessions;
  }

  answer(call: PartCall): Promise<Response> | Response {
    const name = call.rest.join("/");
    const methods = Object.hasOwn(this.#routes, name) ? this.#routes[name] : undefined;
    if (methods === undefined) {
      throw new BerthError("not_found", `the agent has no route ${call.url.pathname}`);
    }
    const route = Object.hasOwn(methods, call.request.method)
      ? methods[call.request.method]
      : undefined;
    if (route === undefined) {
      const allow = Object.keys(methods);
      throw new BerthError("method_not_allowed", `use ${allow.join(", ")}`, { facts: { allow } });
    }
    return route(call);
  }

  #download(call: PartCall): Response {
    const target = this.#target(readFileQuery(call.url.search));
    return download(call, { target, user: this.#user, readers: this.#readers });
  }

  #upload(call: PartCall): Promise<Response> {
    const query = readPutQuery(call.url.search);
    const target = this.#target(query);
    const { mkdirs, mode } = query;
    const conditions = conditionsOf(call.request.headers);
    const asked = { target, user: this.#user, mkdirs, mode, conditions };
    return inTurn(this.#ground.gated, call.request, (turn) => upload(call.request, asked, turn));
  }

  #remove(call: PartCall): Promise<Response> {
    const { recursive, ...at } = readRemoveQuery(call.url.search);
    const target = this.#target(at);
    return inTurn(this.#ground.gated, call.request, async (turn) => {
      const work = remove(target, { recursive, kept: this.#kept });
      const removed = await inSlices(this.#user, work, turn.pass).catch((error) => {
        throw refusalOf(error, target.shown);
      });
      return Response.json({ removed });
    });
  }

  #stat(call: PartCall): Response {
    const target = this.#target(readFileQuery(call.url.search));
    return Response.json(withRightsOf(this.#user, () => stat(target)));
  }

  async #list(call: PartCall): Promise<Response> {
    const query = readListQuery(call.url.search);
    const target = this.#target(query);
    const page = await inSlices(this.#user, list(target, query)).catch((error) => {
      throw refusalOf(error, target.shown);
    });
    return Response.json(page);
  }

  async #watch(call: PartCall): Promise<Response> {
    const query = readWatchQuery(call.url.search);
    const target = this.#target(query);
    if (this.#watches.size >= limits.fileWatchersMax) throw tooMany(limits.fileWatchersMax);
    const watch = new Watch(target, { user: this.#user, recursive: query.recursive });
    this.#watches.add(watch);
    watch.ended.finally(() => this.#watches.delete(watch));
    call.request.signal.addEventListener("abort", () => watch.close());
    await watch.begin();
    return new Response(watch.stream(), {
      headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
    });
  }

  #mkdir(call: PartCall): Promise<Response> {
    return inTurn(this.#ground.gated, call.request, async (turn) => {
      const asked = readMkdirCall(await readJson(call.request));
      const target = this.#target(asked);
      turn.pass();
      const { view, isNew } = withRightsOf(this.#user, () => mkdir(target, asked));
      return Response.json(view, { status: isNew ? 201 : 200 });
    });
  }

  #move(call: PartCall): Promise<Response> {
    return inTurn(this.#ground.gated, call.request, async (turn) => {
      const { from, to, session, overwrite } = readMoveCall(await readJson(call.request));
      const base = this.#base(session);
      turn.pass();
      const how = { overwrite, kept: this.#kept };
      const work = () => move(targetOf(from, base), targetOf(to, base), how);
      return Response.json(withRightsOf(this.#user, work));
    });
  }

  get #user() {
    return this.#ground.place.user;
  }

  /** Removing one of them would empty it first, and then not be allowed. */
  get #kept(): string[] {
    const { workspace, home } = this.#ground.place;
    return [workspace, home];
  }

  #target({ path, session }: { path: string; session?: string | undefined }): Target {
    return targetOf(path, this.#base(session));
  }

  #base(session: string | undefined): string {
    return baseOf(session, this.#ground.place, this.#sessions());
  }

  async #bounded(work: () => Promise<Response>): Promise<Response> {
    const end = this.#transfers.begin();
    try {
      return await work();
    } finally {
      end();
    }
  }
}
