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
import { type BaseOf, targetOf } from "./paths.ts";
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

export function fileRoutes(
  { sandboxEnv: { user, workspace, home }, gated }: SandboxDeps,
  transfers: Transfers,
  baseOf: BaseOf,
): RouteTable {
  const senders = new FileSenders(transfers);
  const watches = new Set<Watch>();
  /** Removing one of them would empty it, and then fail. */
  const protectedFolders = [workspace, home];
  const targetIn = ({ path, session }: { path: string; session?: string | undefined }) =>
    targetOf(path, baseOf(session));

  function put({ request, url }: ModuleRequest): Promise<Response> {
    const { mkdirs, mode, ...address } = readPutQuery(url.searchParams);
    const conditions = conditionsOf(request.headers);
    const options = { target: targetIn(address), user, mkdirs, mode, conditions };
    return runGatedWrite(gated, request, (signal) => upload(request, options, signal));
  }

  function removeAll({ request, url }: ModuleRequest): Promise<Response> {
    const { recursive, ...address } = readRemoveQuery(url.searchParams);
    const target = targetIn(address);
    return runGatedWrite(gated, request, async (signal) => {
      const work = remove(target, { recursive, protectedFolders });
      const removed = await inSlices(user, work, signal).catch((error) => {
        throw toFileError(error, target.shown);
      });
      return Response.json({ removed });
    });
  }

  async function listPage({ url }: ModuleRequest): Promise<Response> {
    const query = readListQuery(url.searchParams);
    const target = targetIn(query);
    const page = await inSlices(user, list(target, query)).catch((error) => {
      throw toFileError(error, target.shown);
    });
    return Response.json(page);
  }

  async function startWatch({ request, url }: ModuleRequest): Promise<Response> {
    const { recursive, ...address } = readWatchQuery(url.searchParams);
    const target = targetIn(address);
    if (watches.size >= limits.fileWatchersMax) throw tooMany(limits.fileWatchersMax);
    const watch = new Watch(target, { user, recursive });
    watches.add(watch);
    watch.ended.finally(() => watches.delete(watch));
    request.signal.addEventListener("abort", () => watch.close());
    await watch.begin();
    return watch.respond();
  }

  function makeFolder({ request }: ModuleRequest): Promise<Response> {
    return runGatedWrite(gated, request, async (signal) => {
      const call = await readJson<MkdirCall>(request);
      const target = targetIn(call);
      signal.throwIfAborted();
      const { view, isNew } = withUserRights(user, () => mkdir(target, call));
      return Response.json(view, { status: isNew ? 201 : 200 });
    });
  }

  function moveEntry({ request }: ModuleRequest): Promise<Response> {
    return runGatedWrite(gated, request, async (signal) => {
      const { from, to, session, overwrite } = await readJson<MoveCall>(request);
      const base = baseOf(session);
      signal.throwIfAborted();
      const options = { overwrite, protectedFolders };
      const work = () => move(targetOf(from, base), targetOf(to, base), options);
      return Response.json(withUserRights(user, work));
    });
  }

  return {
    "": {
      GET(call) {
        const target = targetIn(readFileQuery(call.url.searchParams));
        return download(call, { target, user, senders });
      },
      PUT: (call) => transfers.run(() => put(call)),
      DELETE: (call) => transfers.run(() => removeAll(call)),
    },
    stat: {
      GET({ url }) {
        const target = targetIn(readFileQuery(url.searchParams));
        return Response.json(withUserRights(user, () => stat(target)));
      },
    },
    list: { GET: (call) => transfers.run(() => listPage(call)) },
    watch: { GET: startWatch },
    mkdir: { POST: makeFolder },
    move: { POST: moveEntry },
  };
}
