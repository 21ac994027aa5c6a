/** Handles the two calls on archives. Loaded with the first one, because many sandboxes never use archives. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { runGatedWrite } from "../files/gated-write.ts";
import { type BaseOf, type Target, targetOf } from "../files/paths.ts";
import { readFileQuery } from "../files/query.ts";
import type { Transfers } from "../files/transfers.ts";
import type { SandboxDeps } from "../sandbox-deps.ts";
import { refuse } from "../server/fields.ts";
import type { ModuleRequest, RouteTable } from "../server/module.ts";
import { type Compression, compressed } from "./compression.ts";
import { download } from "./download.ts";
import { pack } from "./pack.ts";
import { unpack } from "./unpack.ts";

export function archiveRoutes(
  { sandboxEnv: { user }, gated }: SandboxDeps,
  transfers: Transfers,
  baseOf: BaseOf,
): RouteTable {
  const targetIn = (url: URL) => {
    const { path, session } = readFileQuery(url.searchParams);
    return targetOf(path, baseOf(session));
  };
  const send = async ({ request, url }: ModuleRequest) => {
    const target = targetIn(url);
    const { type, compression } = negotiateType(request);
    const onEnd = transfers.beginSending();
    const bytes = compressed(pack(target, user), compression);
    const { signal } = request;
    return download(bytes, { type, compression, name: nameOf(target), signal, onEnd });
  };
  const receive = async ({ request, url }: ModuleRequest) => {
    const options = { target: targetIn(url), user, compression: requestCompression(request) };
    const unpacked = await runGatedWrite(gated, request, (signal) =>
      unpack(request, options, signal),
    );
    return Response.json(unpacked);
  };
  return { "": { GET: send, PUT: (call) => transfers.run(() => receive(call)) } };
}

/** Named after the folder. The root and `..` have no name of their own. */
function nameOf({ shown }: Target): string {
  const name = shown.slice(shown.lastIndexOf("/") + 1);
  return name === "" || name === ".." ? "archive" : name;
}

/** See src/protocol/file.ts, which the agent does not bundle. */
const archiveTypes: Record<string, Compression> = {
  "application/x-tar": "none",
  "application/gzip": "gzip",
  "application/zstd": "zstd",
};

const known = Object.keys(archiveTypes).join(", ");

/** How the body of an upload is compressed. */
function requestCompression({ headers }: Request): Compression {
  const type = (headers.get("content-type") ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  const compression = Object.hasOwn(archiveTypes, type) ? archiveTypes[type] : undefined;
  if (compression === undefined) {
    throw new BerthError("unsupported_type", `Content-Type must be one of ${known}.`, {
      facts: { field: "content-type" },
    });
  }
  const encoding = headers.get("content-encoding");
  if (encoding !== null && encoding !== "identity") {
    throw new BerthError("unsupported_type", "An archive must not have a Content-Encoding.", {
      hint: `Name the compression in Content-Type: ${known}.`,
      facts: { field: "content-encoding" },
    });
  }
  return compression;
}

/** Chooses the type of a download: the caller's favourite among the supported ones, a plain tar if any is accepted. */
function negotiateType({ headers }: Request): { type: string; compression: Compression } {
  const [plain = ""] = Object.keys(archiveTypes);
  const accept = headers.get("accept") ?? "*/*";
  const preferences = accept.split(",").map((item) => {
    const [type = "", ...rest] = item.split(";").map((part) => part.trim().toLowerCase());
    const weight = rest.find((part) => part.startsWith("q="))?.slice(2) ?? "1";
    return { type, weight: Number(weight) };
  });
  const [best] = preferences
    .map(({ type, weight }) => ({
      type: /^(\*|application)\/\*$/.test(type) ? plain : type,
      weight,
    }))
    .filter(({ type, weight }) => Object.hasOwn(archiveTypes, type) && weight > 0)
    .sort((a, b) => b.weight - a.weight);
  const compression = best === undefined ? undefined : archiveTypes[best.type];
  if (best === undefined || compression === undefined)
    refuse("accept", `must name one of ${known}`);
  return { type: best.type, compression };
}
