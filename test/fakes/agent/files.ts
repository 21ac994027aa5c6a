/** The routes below /v1/files of an agent in memory. See tree.ts, archives.ts and git.ts for what they work on. */
import { BerthError } from "../../../src/protocol/errors.ts";
import type { MkdirCall, MoveCall } from "../../../src/protocol/file.ts";
import { type FakeAgent, toAbsolute, workspace } from "./agent.ts";
import { type AgentCall, noRoute } from "./call.ts";
import { bytesOf, concat } from "./stdio.ts";
import { type Change, notAFolderError, parentOf, tagOf } from "./tree.ts";
import { leaseLost, Stop, Stopped } from "./waiting.ts";

export class Files {
  readonly #agent: FakeAgent;
  #uploads = 0;

  constructor(agent: FakeAgent) {
    this.#agent = agent;
  }

  async answer(call: AgentCall): Promise<Response> {
    const { tree } = this.#agent;
    const path = () => this.resolvePath(call.query.get("path") ?? ".", call.query.get("session"));
    switch (`${call.method} ${call.rest.join("/")}`) {
      case "GET ":
        return this.#read(call, path());
      case "PUT ":
        return this.#write(call, path());
      case "DELETE ":
        call.admitFence();
        return call.json({ removed: tree.remove(path(), isSet(call.query, "recursive")) });
      case "GET stat":
        return call.json(tree.view(path()));
      case "GET list":
        return call.json(this.#list(call, path()));
      case "GET watch":
        return this.#watch(call, path());
      case "POST mkdir":
        return this.#mkdir(call, await call.body<MkdirCall>());
      case "POST move": {
        const { from, to, session, overwrite } = await call.body<MoveCall>();
        call.admitFence();
        const target = this.resolvePath(to, session);
        tree.move(this.resolvePath(from, session), target, overwrite);
        return call.json(tree.view(target));
      }
    }
    throw noRoute();
  }

  resolvePath(path: string, session: string | null | undefined): string {
    const from = session ? this.#agent.sessions.cwdOf(session) : workspace;
    return toAbsolute(path, from);
  }

  /** Reads a request body; counts as gated work meanwhile. A body that breaks off is refused. */
  async receiveBody(call: AgentCall): Promise<Uint8Array> {
    const stop = new Stop();
    const id = `upload ${++this.#uploads}`;
    call.admitFence();
    const end = this.#agent.beginGatedWork(id, stop);
    const pieces: Uint8Array[] = [];
    const reader = call.request.body?.getReader();
    try {
      while (reader !== undefined) {
        const { done, value } = await stop.wait<ReadableStreamReadResult<Uint8Array>>((got) => {
          reader.read().then(got, () => stop.now("broken"));
          return () => undefined;
        });
        if (done) break;
        pieces.push(value);
      }
    } catch (error) {
      reader?.cancel().catch(() => undefined);
      if (!(error instanceof Stopped)) throw error;
      if (error.why === "fenced") throw leaseLost();
      if (error.why === "broken") throw new BerthError("bad_request", "the body broke off");
      throw new TypeError("connection reset");
    } finally {
      end();
    }
    return concat(pieces);
  }

  #read(call: AgentCall, path: string): Response {
    const file = this.#agent.tree.file(path);
    const { bytes, modifiedAt: at } = file;
    const tag = tagOf(file);
    const headers: Record<string, string> = {
      ...call.headers,
      etag: tag,
      "last-modified": new Date(at).toUTCString(),
      "content-type": "application/octet-stream",
      "accept-ranges": "bytes",
    };
    if (call.request.headers.get("if-none-match") === tag) {
      return new Response(null, { status: 304, headers });
    }
    const rangeMatch = /^bytes=(\d+)-(\d*)$/.exec(call.request.headers.get("range") ?? "");
    if (rangeMatch === null) {
      return new Response(bytes.slice(), {
        headers: { ...headers, "content-length": String(bytes.length) },
      });
    }
    const start = Number(rangeMatch[1]);
    const end =
      rangeMatch[2] === "" ? bytes.length : Math.min(Number(rangeMatch[2]) + 1, bytes.length);
    if (start >= bytes.length) {
      const refused = new BerthError("bad_range", `the file has ${bytes.length} bytes`, {
        facts: { size: bytes.length },
      });
      const answer = call.refuse(refused);
      answer.headers.set("content-range", `bytes */${bytes.length}`);
      return answer;
    }
    headers["content-range"] = `bytes ${start}-${end - 1}/${bytes.length}`;
    headers["content-length"] = String(end - start);
    return new Response(bytes.slice(start, end), { status: 206, headers });
  }

  async #write(call: AgentCall, path: string): Promise<Response> {
    const { tree } = this.#agent;
    tree.refuseUnlessWritable(path, isSet(call.query, "mkdirs"));
    this.#demandConditions(call, path);
    const bytes = await this.receiveBody(call);
    this.#demandConditions(call, path);
    const isNew = !tree.files.has(path);
    tree.write(path, bytes, call.query.get("mode") ?? undefined);
    const answer = call.json(tree.view(path), isNew ? 201 : 200);
    answer.headers.set("etag", tagOf(tree.file(path)));
    return answer;
  }

  #demandConditions({ request }: AgentCall, path: string): void {
    const file = this.#agent.tree.files.get(path);
    const tag = file === undefined ? undefined : tagOf(file);
    const isNamed = (list: string | null) => tag !== undefined && (list === "*" || list === tag);
    const match = request.headers.get("if-match");
    const noneMatch = request.headers.get("if-none-match");
    if ((match === null || isNamed(match)) && !isNamed(noneMatch)) return;
    throw new BerthError("file_changed", `${path} is another; nothing was written`, {
      facts: { path, etag: tag ?? null },
    });
  }

  #list({ url }: AgentCall, path: string) {
    const { tree } = this.#agent;
    if (tree.files.has(path)) throw notAFolderError(path);
    tree.view(path);
    const numberParam = (name: string, otherwise: number) =>
      Number(url.searchParams.get(name) ?? otherwise);
    const level = (entry: string) =>
      entry.split("/").length - (path === "/" ? "" : path).split("/").length;
    const all = tree.below(path).filter((entry) => level(entry) <= numberParam("depth", 1));
    const after = all.indexOf(url.searchParams.get("cursor") ?? "") + 1;
    const page = all.slice(after, after + numberParam("limit", 1000));
    const isLast = after + page.length === all.length;
    const files = page.map((entry) => tree.view(entry));
    return { files, nextCursor: isLast ? null : (page.at(-1) ?? null) };
  }

  #mkdir(call: AgentCall, { path, session, parents, mode }: MkdirCall): Response {
    call.admitFence();
    const { tree } = this.#agent;
    const target = this.resolvePath(path, session);
    if (tree.has(target)) {
      if (parents && tree.folders.has(target)) return call.json(tree.view(target));
      throw new BerthError("file_exists", `${target} is there already`);
    }
    if (parents) tree.makeFolders(parentOf(target));
    tree.view(parentOf(target));
    tree.makeFolder(target, mode);
    return call.json(tree.view(target), 201);
  }

  /** Ends with the agent, or when the reader disconnects. */
  #watch(call: AgentCall, path: string): Response {
    const { tree, onEnd } = this.#agent;
    if (!tree.folders.has(path)) throw notAFolderError(path);
    let close = () => {};
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        const sendChange = (change: Change) => {
          if (!change.path.startsWith(`${path}/`)) return;
          controller.enqueue(event("change", { changes: [change] }));
        };
        const forget = onEnd.once(() => {
          close();
          controller.error(new TypeError("connection reset"));
        });
        close = () => {
          tree.listeners.delete(sendChange);
          forget();
        };
        tree.listeners.add(sendChange);
        controller.enqueue(event("ready", {}));
      },
      cancel: () => close(),
    });
    return call.stream(body, { "content-type": "text/event-stream" });
  }
}

export function event(name: string, data: unknown): Uint8Array {
  return bytesOf(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}

function isSet(query: URLSearchParams, name: string): boolean {
  return query.get(name) === "true" || query.get(name) === "1";
}
