/** Sends the bytes of one file: opens it with the rights of a command and sends it by its descriptor. */
import { openSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { type User, withUserRights } from "../kernel/libc.ts";
import { close, closing, currentFolder, open, type Status, statusAt } from "../kernel/openat.ts";
import { failureResponse } from "../server/failure.ts";
import type { ModuleRequest } from "../server/module.ts";
import { matchesTag, rangeOf } from "./conditions.ts";
import { mapFileErrors, notAFile } from "./file-errors.ts";
import type { FileSenders } from "./file-senders.ts";
import { openPath, type Target } from "./paths.ts";
import { entityTagOf } from "./view.ts";

type DownloadOptions = { target: Target; user: User | undefined; senders: FileSenders };

export function download(
  call: ModuleRequest,
  { target, user, senders }: DownloadOptions,
): Response {
  const { request, requestId } = call;
  senders.settle();
  const { fd, status } = mapFileErrors(target.shown, () =>
    withUserRights(user, () => openFile(target)),
  );
  // By then the runtime, which takes the response first, has opened the file itself.
  setImmediate(() => close(fd));
  const { size } = status;
  const headers = headersOf(target, status);
  const noneMatch = request.headers.get("if-none-match");
  if (noneMatch !== null && matchesTag(noneMatch, entityTagOf(status))) {
    return new Response(null, { status: 304, headers });
  }
  const range = isRangeMeant(request.headers, status)
    ? rangeOf(request.headers.get("range"), size)
    : undefined;
  if (range === "outside") {
    const refused = new BerthError("bad_range", `The file has ${size} bytes.`, { facts: { size } });
    const response = failureResponse(refused, requestId);
    response.headers.set("content-range", `bytes */${size}`);
    return response;
  }
  const { start, end } = range ?? { start: 0, end: size };
  if (range !== undefined) headers["content-range"] = `bytes ${start}-${end - 1}/${size}`;
  senders.begin(call, status, end - start);
  const body = size === 0 ? null : Bun.file(`/proc/self/fd/${fd}`).slice(start, end);
  return new Response(body, { status: range === undefined ? 200 : 206, headers });
}

/** Opens the path without touching what is there, because a pipe would block and a device might act; then the file. */
function openFile({ raw, shown }: Target): { fd: number; status: Status } {
  const path = openPath(currentFolder, raw);
  using _path = closing(path);
  const { kind } = statusAt(path);
  if (kind === "folder") throw notAFile(shown, "a folder");
  if (kind !== "file") throw notAFile(shown, "a device, pipe or socket");
  const fd = openSync(`/proc/self/fd/${path}`, open.read | open.nonBlocking | open.noTerminal);
  return { fd, status: statusAt(fd) };
}

/** False if If-Range names another version: then the whole file is sent. */
function isRangeMeant(headers: Headers, status: Status): boolean {
  const condition = headers.get("if-range");
  return condition === null || condition === entityTagOf(status) || condition === dateOf(status);
}

function headersOf({ shown }: Target, status: Status): Record<string, string> {
  return {
    "content-type": "application/octet-stream",
    "content-disposition": dispositionOf(shown.slice(shown.lastIndexOf("/") + 1)),
    "x-content-type-options": "nosniff",
    "accept-ranges": "bytes",
    etag: entityTagOf(status),
    "last-modified": dateOf(status),
  };
}

function dateOf({ modifiedNs }: Status): string {
  return new Date(Number(modifiedNs / 1_000_000n)).toUTCString();
}

/** The plain form is for old clients, the encoded one for names beyond ASCII. */
export function dispositionOf(name: string): string {
  const plain = name.replace(/[^\x20-\x7e]|["\\%]/g, "_");
  const encoded = encodeURIComponent(name.toWellFormed()).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}
