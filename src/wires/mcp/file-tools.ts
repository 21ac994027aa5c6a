/** Reads, writes, edits and searches files for tools. */
import type { ExecResult } from "../../protocol/exec.ts";
import type { FileView } from "../../protocol/file.ts";
import { BadParams, type ToolCall } from "./messages.ts";
import { leaseOf } from "./tools.ts";

const readBytesMax = 200_000;
const editBytesMax = 4 * 1024 * 1024;
const matchesMax = 200;

export async function readFile({ calls, sandbox, args }: ToolCall): Promise<object> {
  const offset = Number(args.offset ?? 0);
  const limit = Math.min(Number(args.limit ?? readBytesMax), readBytesMax);
  const range = `bytes=${offset}-${offset + limit - 1}`;
  const headers = args.offset === undefined && args.limit === undefined ? {} : { range };
  const response = await calls.send(pathOf(sandbox, args), { headers });
  const { bytes, isCut } = await readUpTo(response, limit);
  return {
    content: bytes.toString(),
    ...(isCut ? { cut: true, next_offset: offset + bytes.length } : {}),
  };
}

async function readUpTo(
  response: Response,
  max: number,
): Promise<{ bytes: Buffer; isCut: boolean }> {
  const reader = response.body?.getReader();
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  while (reader !== undefined && bytes <= max) {
    const { done, value } = await reader.read();
    if (done) break;
    pieces.push(value);
    bytes += value.length;
  }
  reader?.cancel().catch(() => undefined);
  return { bytes: Buffer.concat(pieces).subarray(0, max), isCut: bytes > max };
}

export async function writeFile({ calls, sandbox, args }: ToolCall): Promise<object> {
  const headers = { "content-type": "application/octet-stream", ...leaseOf(args) };
  const init = { method: "PUT", body: Buffer.from(String(args.content)), headers };
  const response = await calls.send(`${pathOf(sandbox, args)}&mkdirs=1`, init);
  const { path, size } = (await response.json()) as FileView;
  return { path, bytes: size };
}

/** The entity tag refuses the change where somebody else has changed the file meanwhile. */
export async function editFile({ calls, sandbox, args }: ToolCall): Promise<object> {
  const response = await calls.send(pathOf(sandbox, args));
  const etag = response.headers.get("etag") ?? "*";
  const { bytes, isCut } = await readUpTo(response, editBytesMax);
  if (isCut) throw new BadParams(`path: the file is larger than ${editBytesMax} bytes`);
  const parts = bytes.toString().split(String(args.old));
  if (parts.length !== 2) {
    const count = parts.length - 1;
    throw new BadParams(`old: occurs ${count} times in the file, and must occur once`);
  }
  const headers = {
    "content-type": "application/octet-stream",
    "if-match": etag,
    ...leaseOf(args),
  };
  const body = Buffer.from(parts.join(String(args.new)));
  await calls.send(pathOf(sandbox, args), { method: "PUT", body, headers });
  return { path: String(args.path), bytes: body.length };
}

export async function searchFiles({ calls, sandbox, args }: ToolCall): Promise<object> {
  const argv = ["grep", "-rnIE", "--exclude-dir=.git", "-m", String(matchesMax), "-e"];
  const body = {
    argv: [...argv, String(args.pattern), "--", String(args.path ?? ".")],
    maxOutputBytes: readBytesMax,
  };
  const result = await calls.json<ExecResult>("POST", `${sandbox}/exec`, body, leaseOf(args));
  if (result.exitCode === 2) throw new BadParams(result.stderr.slice(0, 500));
  const lines = result.stdout.split("\n").filter((line) => line !== "");
  const isCut = lines.length > matchesMax || Object.values(result.truncated).some(Boolean);
  return { matches: lines.slice(0, matchesMax), ...(isCut ? { cut: true } : {}) };
}

function pathOf(sandbox: string, { path }: Record<string, unknown>): string {
  return `${sandbox}/files?${new URLSearchParams({ path: String(path) })}`;
}
