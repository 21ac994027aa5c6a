/** Handles the file routes. Loaded with the first call, because many sandboxes never use files. */
import type { MkdirCall, MoveCall } from "../../../src/protocol/file.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { withUserRights } from "../kernel/libc.ts";
import type { SandboxDeps } from "../sandbox-deps.ts";
import { readJson } from "../server/body.ts";
import type { ModuleRequest, RouteTable } from "../server/module.ts";
import { conditionsOf } from "./conditions.ts";
import { download } from "./download.ts";
import { toFileError } from "./file-errors.ts";
import { FileSenders } from "./file-senders.ts";
import { mkdir } from "./folders.ts";
import { runGatedWrite } from "./gated-write.ts";
import { list } from "./list.ts";
import { move } from "./move.ts";
import { type BaseOf, type Target, targetOf } from "./paths.ts";
import {
  readFileQuery,
  readListQuery,
  readPutQuery,
  readRemoveQuery,
  readWatchQuery,
} from "./query.ts";
import { remove } from "./remove.ts";
import { inSlices } from "./slices.ts";
import { type Transfers, tooMany } from "./transfers.ts";
import { upload } from "./upload.ts";
import { stat } from "./view.ts";
import { Watch } from "./watch.ts";

export class FileRoutes {
  readonly #deps: SandboxDeps;
  readonly #baseOf: BaseOf;
  readonly #transfers: Transfers;
  readonly #senders: FileSenders;
  readonly #watches = new Set<Watch>();

  readonly routes: RouteTable = {
    "": {
      GET: (call) => this.#download(call),
      PUT: (call) => this.#limited(() => this.#upload(call)),
      DELETE: (call) => this.#limited(() => this.#remove(call)),
    },
    stat: { GET: (call) => this.#stat(call) },
    list: { GET: (call) => this.#limited(() => this.#list(call)) },
    watch: { GET: (call) => this.#watch(call) },
    mkdir: { POST: (call) => this.#mkdir(call) },
    move: { POST: (call) => this.#move(call) },
  };

  constructor(deps: SandboxDeps, transfers: Transfers, baseOf: BaseOf) {
    this.#deps = deps;
    this.#transfers = transfers;
    this.#senders = new FileSenders(transfers);
    this.#baseOf = baseOf;
  }

  #download(call: ModuleRequest): Response {
    const target = this.#target(readFileQuery(call.url.searchParams));
    return download(call, { target, user: this.#user, senders: this.#senders });
  }

  #upload(call: ModuleRequest): Promise<Response> {
    const query = readPutQuery(call.url.searchParams);
    const target = this.#target(query);
    const { mkdirs, mode } = query;
    const conditions = conditionsOf(call.request.headers);
    const options = { target, user: this.#user, mkdirs, mode, conditions };
    return runGatedWrite(this.#deps.gated, call.request, (write) =>
      upload(call.request, options, write),
    );
  }

  #remove(call: ModuleRequest): Promise<Response> {
    const { recursive, ...address } = readRemoveQuery(call.url.searchParams);
    const target = this.#target(address);
    return runGatedWrite(this.#deps.gated, call.request, async (write) => {
      const work = remove(target, { recursive, protectedFolders: this.#protectedFolders });
      const removed = await inSlices(this.#user, work, write.throwIfEnded).catch((error) => {
        throw toFileError(error, target.shown);
      });
      return Response.json({ removed });
    });
  }

  #stat(call: ModuleRequest): Response {
    const target = this.#target(readFileQuery(call.url.searchParams));
    return Response.json(withUserRights(this.#user, () => stat(target)));
  }

  async #list(call: ModuleRequest): Promise<Response> {
    const query = readListQuery(call.url.searchParams);
    const target = this.#target(query);
    const page = await inSlices(this.#user, list(target, query)).catch((error) => {
      throw toFileError(error, target.shown);
    });
    return Response.json(page);
  }

  async #watch(call: ModuleRequest): Promise<Response> {
    const query = readWatchQuery(call.url.searchParams);
    const target = this.#target(query);
    if (this.#watches.size >= limits.fileWatchersMax) throw tooMany(limits.fileWatchersMax);
    const watch = new Watch(target, { user: this.#user, recursive: query.recursive });
    this.#watches.add(watch);
    watch.ended.finally(() => this.#watches.delete(watch));
    call.request.signal.addEventListener("abort", () => watch.close());
    await watch.begin();
    return watch.respond();
  }

  #mkdir(call: ModuleRequest): Promise<Response> {
    return runGatedWrite(this.#deps.gated, call.request, async (write) => {
      const mkdirCall = await readJson<MkdirCall>(call.request);
      const target = this.#target(mkdirCall);
      write.throwIfEnded();
      const { view, isNew } = withUserRights(this.#user, () => mkdir(target, mkdirCall));
      return Response.json(view, { status: isNew ? 201 : 200 });
    });
  }

  #move(call: ModuleRequest): Promise<Response> {
    return runGatedWrite(this.#deps.gated, call.request, async (write) => {
      const { from, to, session, overwrite } = await readJson<MoveCall>(call.request);
      const base = this.#baseOf(session);
      write.throwIfEnded();
      const options = { overwrite, protectedFolders: this.#protectedFolders };
      const work = () => move(targetOf(from, base), targetOf(to, base), options);
      return Response.json(withUserRights(this.#user, work));
    });
  }

  get #user() {
    return this.#deps.sandboxEnv.user;
  }

  /** Removing one of them would empty it, and then fail. */
  get #protectedFolders(): string[] {
    const { workspace, home } = this.#deps.sandboxEnv;
    return [workspace, home];
  }

  #target({ path, session }: { path: string; session?: string | undefined }): Target {
    return targetOf(path, this.#baseOf(session));
  }

  async #limited(work: () => Promise<Response>): Promise<Response> {
    const end = this.#transfers.begin();
    try {
      return await work();
    } finally {
      end();
    }
  }
}
