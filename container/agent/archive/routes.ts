/**
 * Owns the two calls on archives. Loaded when the first one comes: many sandboxes never see one.
 * Does not own packing (pack.ts) nor unpacking (unpack.ts).
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { inTurn } from "../files/gated-write.ts";
import { type Target, targetOf } from "../files/paths.ts";
import { baseOf, type Sessions } from "../files/sessions.ts";
import type { Transfers } from "../files/transfers.ts";
import type { Ground } from "../sandbox.ts";
import type { PartCall } from "../server/module.ts";
import { compressed } from "./compression.ts";
import { download } from "./download.ts";
import { pack } from "./pack.ts";
import { readArchiveQuery, sentAs, wantedAs } from "./types.ts";
import { unpack } from "./unpack.ts";

export class ArchiveRoutes {
  readonly #ground: Ground;
  readonly #transfers: Transfers;
  readonly #sessions: () => Sessions | undefined;

  constructor(ground: Ground, transfers: Transfers, sessions: () => Sessions | undefined) {
    this.#ground = ground;
    this.#transfers = transfers;
    this.#sessions = sessions;
  }

  answer(call: PartCall): Promise<Response> {
    if (call.rest.length > 0) {
      throw new BerthError("not_found", `the agent has no route ${call.url.pathname}`);
    }
    if (call.request.method === "GET") return this.#download(call);
    if (call.request.method === "PUT") return this.#upload(call);
    const allow = ["GET", "PUT"];
    throw new BerthError("method_not_allowed", `use ${allow.join(", ")}`, { facts: { allow } });
  }

  async #download({ request, url }: PartCall): Promise<Response> {
    const target = this.#target(url.search);
    const { type, compression } = wantedAs(request);
    const end = this.#transfers.beginSending();
    const bytes = compressed(pack(target, this.#ground.place.user), compression);
    return download(bytes, {
      type,
      compression,
      name: nameOf(target),
      signal: request.signal,
      end,
    });
  }

  async #upload({ request, url }: PartCall): Promise<Response> {
    const target = this.#target(url.search);
    const compression = sentAs(request);
    const end = this.#transfers.begin();
    try {
      const asked = { target, user: this.#ground.place.user, compression };
      const work = inTurn(this.#ground.gated, request, (turn) => unpack(request, asked, turn));
      return Response.json(await work);
    } finally {
      end();
    }
  }

  #target(search: string): Target {
    const { path, session } = readArchiveQuery(search);
    return targetOf(path, baseOf(session, this.#ground.place, this.#sessions()));
  }
}

/** As the folder is called; the root and what is only above another have no name. */
function nameOf({ shown }: Target): string {
  const name = shown.slice(shown.lastIndexOf("/") + 1);
  return name === "" || name === ".." ? "archive" : name;
}
