/**
 * Owns the rows of bad calls on files, archives and clones: what is wrong with each, and how it is refused.
 */
import { limits } from "../../src/protocol/limits.ts";
import type { BadCall } from "./bad-calls.ts";

const bad = (field: string): BadCall[2] => [400, "bad_request", field];
const raw = { "content-type": "application/octet-stream" };
const tar = { "content-type": "application/x-tar" };
const long = "p".repeat(limits.pathBytesMax + 1);

/** The holder's own calls, so that nothing but their form refuses them. */
export function badFiles(mine: string): BadCall[] {
  const lease = { "berth-lease": mine };
  const get = (tail: string): BadCall[1] => ["GET", tail];
  const put = (query: string, more = {}): BadCall[1] => [
    ...(["PUT", `/files${query}`, "x"] as const),
    { ...lease, ...raw, ...more },
  ];
  const remove = (query: string): BadCall[1] => ["DELETE", `/files${query}`, undefined, lease];
  const post = (what: string, body: unknown): BadCall[1] => ["POST", `/${what}`, body, lease];
  const mkdir = (body: unknown) => post("files/mkdir", body);
  const move = (body: unknown) => post("files/move", body);
  const clone = (body: object) => post("git/clone", { url: "https://git.example/a", ...body });
  return [
    ["a file without a path", get("/files"), bad("path")],
    ["a file by an empty path", get("/files?path="), bad("path")],
    ["a file by a NUL", get("/files?path=a%00b"), bad("path")],
    ["a file by bytes that are no UTF-8", get("/files?path=%FF"), bad("path")],
    ["a file by half a percent sign", get("/files?path=%2"), bad("path")],
    ["a file by half a letter", get("/files?path=%ED%A0%80"), bad("path")],
    ["a file by a path that is too long", get(`/files?path=${long}`), bad("path")],
    ["a file by two paths", get("/files?path=a&path=b"), bad("path")],
    ["a file by a name of no field", get("/files?path=a&name=b"), bad("name")],
    ["a file by a field without UTF-8", get("/files?%FF=a"), bad("query")],
    ["a file by __proto__", get("/files?path=a&__proto__=b"), bad("__proto__")],
    ["a file that is woken for", get("/files?path=a&wake=true"), bad("wake")],
    ["a file of a bad session", get("/files?path=a&session=a%20b"), bad("session")],
    ["a file that is not there", get("/files?path=nowhere"), [404, "file_not_found"]],
    ["a look at no path", get("/files/stat"), bad("path")],
    ["a look at what is not there", get("/files/stat?path=nowhere"), [404, "file_not_found"]],
    ["a list to no depth", get("/files/list?depth=0"), bad("depth")],
    ["a list deeper than all", get("/files/list?depth=65"), bad("depth")],
    ["a list of half a level", get("/files/list?depth=1.5"), bad("depth")],
    ["a list of no entries", get("/files/list?limit=0"), bad("limit")],
    ["a list of too many entries", get("/files/list?limit=5001"), bad("limit")],
    ["a list after too long a name", get(`/files/list?cursor=${long.repeat(4)}`), bad("cursor")],
    ["a list that is recursive", get("/files/list?recursive=1"), bad("recursive")],
    ["a watch that is recursive perhaps", get("/files/watch?recursive=maybe"), bad("recursive")],
    ["a write without a path", put(""), bad("path")],
    ["a write with a mode of words", put("?path=a&mode=rw"), bad("mode")],
    ["a write with a mode of two digits", put("?path=a&mode=64"), bad("mode")],
    ["a write that makes folders perhaps", put("?path=a&mkdirs=yes"), bad("mkdirs")],
    ["a write that wakes perhaps", put("?path=a&wake=perhaps"), bad("wake")],
    ["a write that is recursive", put("?path=a&recursive=1"), bad("recursive")],
    [
      "a write of a form",
      put("?path=a", { "content-type": "multipart/form-data; boundary=x" }),
      [415, "unsupported_type"],
    ],
    [
      "a write that is compressed",
      put("?path=a", { "content-encoding": "gzip" }),
      [415, "unsupported_type"],
    ],
    ["a write under no lease", ["PUT", "/files?path=a", "x", raw], [423, "lease_held"]],
    ["a removal without a path", remove(""), bad("path")],
    ["a removal that is recursive perhaps", remove("?path=a&recursive=2"), bad("recursive")],
    ["a folder without a path", mkdir({}), bad("path")],
    ["a folder by a NUL", mkdir({ path: "a\0b" }), bad("path")],
    ["a folder of half a letter", mkdir('{"path":"\\ud800"}'), bad("path")],
    ["a folder with text for parents", mkdir({ path: "a", parents: "yes" }), bad("parents")],
    ["a folder with a mode as a number", mkdir({ path: "a", mode: 755 }), bad("mode")],
    ["a folder that is recursive", mkdir({ path: "a", recursive: true }), bad("recursive")],
    ["a move to nowhere", move({ from: "a" }), bad("to")],
    ["a move from nowhere", move({ to: "a" }), bad("from")],
    [
      "a move that overwrites perhaps",
      move({ from: "a", to: "b", overwrite: 1 }),
      bad("overwrite"),
    ],
    ["an archive by an empty path", get("/archive?path="), bad("path")],
    ["an archive to a depth", get("/archive?depth=1"), bad("depth")],
    ["an archive of what is not there", get("/archive?path=nowhere"), [404, "file_not_found"]],
    [
      "an archive of no type",
      ["PUT", "/archive", "x", { ...lease, ...raw }],
      [415, "unsupported_type"],
    ],
    [
      "an archive by bytes that are no UTF-8",
      ["PUT", "/archive?path=%C3", "x", { ...lease, ...tar }],
      bad("path"),
    ],
    ["a clone of nothing", post("git/clone", {}), bad("url")],
    ["a clone of a word", clone({ url: "repository" }), bad("url")],
    ["a clone by an option", clone({ url: "--upload-pack=/bin/sh" }), bad("url")],
    ["a clone by a helper of git", clone({ url: "ext::sh -c true" }), bad("url")],
    ["a clone of a branch that is an option", clone({ branch: "--all" }), bad("branch")],
    ["a clone of a branch with a space", clone({ branch: "a b" }), bad("branch")],
    ["a clone of no history", clone({ depth: 0 }), bad("depth")],
    ["a clone into no folder", clone({ dir: "" }), bad("dir")],
    [
      "a clone with half a credential",
      clone({ credentials: { username: "a" } }),
      bad("credentials.password"),
    ],
    ["a clone in no time", clone({ timeoutMs: 1 }), bad("timeoutMs")],
  ];
}
