/** Handles the two calls on archives. Loaded with the first one, because many sandboxes never use archives. */
import { runGatedWrite } from "../files/gated-write.ts";
import { type BaseOf, type Target, targetOf } from "../files/paths.ts";
import { readFileQuery } from "../files/query.ts";
import type { Transfers } from "../files/transfers.ts";
import type { SandboxDeps } from "../sandbox-deps.ts";
import type { ModuleRequest, RouteTable } from "../server/module.ts";
import { compressed } from "./compression.ts";
import { download } from "./download.ts";
import { pack } from "./pack.ts";
import { negotiateType, requestCompression } from "./types.ts";
import { unpack } from "./unpack.ts";

export class ArchiveRoutes {
  readonly #deps: SandboxDeps;
  readonly #transfers: Transfers;
  readonly #baseOf: BaseOf;

  readonly routes: RouteTable = {
    "": { GET: (call) => this.#download(call), PUT: (call) => this.#upload(call) },
  };

  constructor(deps: SandboxDeps, transfers: Transfers, baseOf: BaseOf) {
    this.#deps = deps;
    this.#transfers = transfers;
    this.#baseOf = baseOf;
  }

  async #download({ request, url }: ModuleRequest): Promise<Response> {
    const target = this.#target(url);
    const { type, compression } = negotiateType(request);
    const end = this.#transfers.beginSending();
    const bytes = compressed(pack(target, this.#deps.sandboxEnv.user), compression);
    return download(bytes, {
      type,
      compression,
      name: nameOf(target),
      signal: request.signal,
      onEnd: end,
    });
  }

  async #upload({ request, url }: ModuleRequest): Promise<Response> {
    const target = this.#target(url);
    const compression = requestCompression(request);
    const end = this.#transfers.begin();
    try {
      const options = { target, user: this.#deps.sandboxEnv.user, compression };
      const work = runGatedWrite(this.#deps.gated, request, (write) =>
        unpack(request, options, write),
      );
      return Response.json(await work);
    } finally {
      end();
    }
  }

  #target(url: URL): Target {
    const { path, session } = readFileQuery(url.searchParams);
    return targetOf(path, this.#baseOf(session));
  }
}

/** Named after the folder. The root and `..` have no name of their own. */
function nameOf({ shown }: Target): string {
  const name = shown.slice(shown.lastIndexOf("/") + 1);
  return name === "" || name === ".." ? "archive" : name;
}
