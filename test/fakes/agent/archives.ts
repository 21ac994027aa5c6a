/** Uploads and downloads trees as plain tar archives: files and folders with short names only. */
import { BerthError } from "../../../src/protocol/errors.ts";
import type { FakeAgent } from "./agent.ts";
import { type AgentCall, noRoute } from "./call.ts";
import { bytesOf } from "./stdio.ts";
import type { FakeTree } from "./tree.ts";

const block = 512;
const plain = "application/x-tar";

export async function answerArchive(agent: FakeAgent, call: AgentCall): Promise<Response> {
  const { tree } = agent;
  const root = agent.files.resolvePath(call.query.get("path") ?? ".", call.query.get("session"));
  if (call.method === "GET") {
    const accept = call.request.headers.get("accept") ?? "*/*";
    if (!/x-tar|\*/.test(accept)) throw unsupportedTypeError();
    tree.view(root);
    const bytes = new Blob(pack(tree, root));
    return new Response(bytes, { headers: { ...call.headers, "content-type": plain } });
  }
  if (call.method !== "PUT") throw noRoute();
  if (call.request.headers.get("content-type") !== plain) throw unsupportedTypeError();
  const bytes = await agent.files.receiveBody(call);
  return call.json(unpack(tree, root, bytes));
}

function pack(tree: FakeTree, from: string): Uint8Array<ArrayBuffer>[] {
  const blocks = tree.below(from).flatMap((path) => {
    const bytes = tree.files.get(path)?.bytes;
    const name = path.slice(from.length + 1);
    const head = header(bytes === undefined ? `${name}/` : name, tree.view(path).mode, bytes);
    if (bytes === undefined) return [head];
    return [head, bytes.slice(), new Uint8Array((block - (bytes.length % block)) % block)];
  });
  return [...blocks, new Uint8Array(2 * block)];
}

function header(name: string, mode: string, bytes: Uint8Array | undefined) {
  const head = new Uint8Array(block);
  const put = (offset: number, text: string) => head.set(bytesOf(text), offset);
  put(0, name);
  put(100, `${mode.padStart(7, "0")}\0`);
  put(124, `${(bytes?.length ?? 0).toString(8).padStart(11, "0")}\0`);
  put(148, "        ");
  put(156, bytes === undefined ? "5" : "0");
  put(257, "ustar\u000000");
  const sum = head.reduce((total, byte) => total + byte, 0);
  put(148, `${sum.toString(8).padStart(6, "0")}\0 `);
  return head;
}

function unpack(tree: FakeTree, to: string, tar: Uint8Array): { entries: number; bytes: number } {
  const counts = { entries: 0, bytes: 0 };
  const text = (offset: number, length: number) =>
    new TextDecoder().decode(tar.slice(offset, offset + length)).split("\0", 1)[0] ?? "";
  for (let offset = 0; text(offset, 100) !== ""; ) {
    const name = text(offset, 100).replace(/\/$/, "");
    const size = Number.parseInt(text(offset + 124, 12), 8);
    if (name.startsWith("/") || name.split("/").includes("..") || !Number.isInteger(size)) {
      throw new BerthError("bad_archive", `the archive holds ${name}, which is not unpacked`);
    }
    const path = `${to === "/" ? "" : to}/${name}`;
    if (text(offset + 156, 1) === "5") tree.makeFolders(path);
    else {
      tree.refuseUnlessWritable(path, true);
      const mode = text(offset + 100, 8).replace(/^0+/, "");
      tree.write(path, tar.slice(offset + block, offset + block + size), mode);
    }
    counts.entries++;
    counts.bytes += size;
    offset += block + Math.ceil(size / block) * block;
  }
  return counts;
}

function unsupportedTypeError(): BerthError {
  return new BerthError("unsupported_type", `An agent in memory knows ${plain} only.`);
}
