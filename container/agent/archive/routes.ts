/**
 * Handles the two calls on archives. Loaded with the first one, because many sandboxes never use archives.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { runGatedWrite } from "../files/gated-write.ts";
import { type Target, targetOf } from "../files/paths.ts";
import { readFileQuery } from "../files/query.ts";
import { baseOf, type Sessions } from "../files/sessions.ts";
import type { Transfers } from "../files/transfers.ts";
import type { SandboxDeps } from "../sandbox-deps.ts";
import type { ModuleRequest } from "../server/module.ts";
import { compressed } from "./compression.ts";
import { download } from "./download.ts";
import { pack } from "./pack.ts";
import { negotiateType, requestCompression } from "./types.ts";
import { unpack } from "./unpack.ts";

export class ArchiveRoutes {
  readonly #deps: SandboxDeps;
  readonly #transfers: Transfers;
  readonly #sessions: () => Sessions | undefined;

  constructor(deps: SandboxDeps, transfers: Transfers, sessions: () => Sessions | undefined) {
    this.#deps = deps;
    this.#transfers = transfers;
    this.#sessions = sessions;
  }

  handle(call: ModuleRequest): Promise<Response> {
    if (call.rest.length > 0) {
      throw new BerthError("not_found", `The agent has no route ${call.url.pathname}.`);
    }
    if (call.request.method === "GET") return this.#download(call);
    if (call.request.method === "PUT") return this.#upload(call);
    const allow = ["GET", "PUT"];
    throw new BerthError("method_not_allowed", `Use ${allow.join(", ")}.`, { facts: { allow } });
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
    return targetOf(path, baseOf(session, this.#deps.sandboxEnv, this.#sessions()));
  }
}

/** Named after the folder. The root and `..` have no name of their own. */
function nameOf({ shown }: Target): string {
  const name = shown.slice(shown.lastIndexOf("/") + 1);
  return name === "" || name === ".." ? "archive" : name;
}
