/**
 * Owns the bytes of one file as an answer: opened with the rights of a command, then sent by its descriptor.
 * Does not own which bytes are asked for (range.ts).
 */
import { openSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { type User, withRightsOf } from "../kernel/libc.ts";
import { close, nowhere, open, type Status, statusAt } from "../kernel/openat.ts";
import { failureAnswer } from "../server/failure.ts";
import type { PartCall } from "../server/module.ts";
import { names } from "./conditions.ts";
import { openPlace, type Target } from "./paths.ts";
import { rangeOf } from "./range.ts";
import type { Readers } from "./readers.ts";
import { notAFile, refusing } from "./refusal.ts";
import { tagOf } from "./view.ts";

type Asked = { target: Target; user: User | undefined; readers: Readers };

export function download(call: PartCall, { target, user, readers }: Asked): Response {
  readers.settle();
  const { fd, status } = refusing(target.shown, () => withRightsOf(user, () => openFile(target)));
  // The runtime opens it once more while it takes the answer, which is before this.
  setImmediate(() => close(fd));
  return answerOf(call, `/proc/self/fd/${fd}`, { target, status, readers });
}

function answerOf(
  call: PartCall,
  file: string,
  { target, status, readers }: { target: Target; status: Status; readers: Readers },
): Response {
  const { request, requestId } = call;
  const { size } = status;
  const headers = headersOf(target, status);
  const noneMatch = request.headers.get("if-none-match");
  if (noneMatch !== null && names(noneMatch, tagOf(status))) {
    return new Response(null, { status: 304, headers });
  }
  const range = isRangeMeant(request.headers, status)
    ? rangeOf(request.headers.get("range"), size)
    : undefined;
  if (range === "outside") {
    const refused = new BerthError("bad_range", `the file has ${size} bytes`, { facts: { size } });
    const answer = failureAnswer(refused, requestId);
    answer.headers.set("content-range", `bytes */${size}`);
    return answer;
  }
  const { start, end } = range ?? { start: 0, end: size };
  if (range !== undefined) headers["content-range"] = `bytes ${start}-${end - 1}/${size}`;
  readers.begin(call, status, end - start);
  const body = size === 0 ? null : Bun.file(file).slice(start, end);
  return new Response(body, { status: range === undefined ? 200 : 206, headers });
}

/** A place first: a pipe would wait, a device might act. What is a file is then opened through that place. */
function openFile({ raw, shown }: Target): { fd: number; status: Status } {
  const place = openPlace(nowhere, raw);
  try {
    const { kind } = statusAt(place);
    if (kind === "folder") throw notAFile(shown, "a folder");
    if (kind !== "file") throw notAFile(shown, "a device, pipe or socket");
    const fd = openSync(`/proc/self/fd/${place}`, open.read | open.nonBlocking | open.noTerminal);
    return { fd, status: statusAt(fd) };
  } finally {
    close(place);
  }
}

/** If-Range: the part is wanted of this very file only, else all of the new one. */
function isRangeMeant(headers: Headers, status: Status): boolean {
  const condition = headers.get("if-range");
  return condition === null || condition === tagOf(status) || condition === dateOf(status);
}

function headersOf({ shown }: Target, status: Status): Record<string, string> {
  return {
    "content-type": "application/octet-stream",
    "content-disposition": dispositionOf(shown.slice(shown.lastIndexOf("/") + 1)),
    "x-content-type-options": "nosniff",
    "accept-ranges": "bytes",
    etag: tagOf(status),
    "last-modified": dateOf(status),
  };
}

function dateOf({ modifiedNs }: Status): string {
  return new Date(Number(modifiedNs / 1_000_000n)).toUTCString();
}

/** The plain form for old readers, the other for all that has more than ASCII. */
export function dispositionOf(name: string): string {
  const plain = name.replace(/[^\x20-\x7e]|["\\%]/g, "_");
  const encoded = encodeURIComponent(name.toWellFormed()).replace(
    /['()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}
