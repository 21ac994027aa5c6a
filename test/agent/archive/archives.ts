/**
 * Calls the archive routes of a real agent in tests, and describes trees as the machine sees them.
 */
import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { archiveTypes, unpackedSchema } from "../../../src/protocol/file.ts";
import type { Agent } from "../agent.ts";
import { queryOf, read } from "../files/files.ts";

export type ArchiveType = keyof typeof archiveTypes;
export const types = Object.keys(archiveTypes) as ArchiveType[];
export const plain = "application/x-tar";
/** For a body that is a stream. */
export const streaming = { duplex: "half" } as RequestInit;

export class Archives {
  readonly agent: Pick<Agent, "request">;

  constructor(agent: Pick<Agent, "request">) {
    this.agent = agent;
  }

  get(path: string, accept: string = plain, init: RequestInit = {}): Promise<Response> {
    const headers = { accept };
    return this.agent.request(`/v1/archive?${queryOf({ path })}`, { ...init, headers });
  }

  async bytes(path: string, accept: string = plain): Promise<Buffer<ArrayBuffer>> {
    const response = await this.get(path, accept);
    const bytes = Buffer.from(await response.arrayBuffer());
    if (response.status !== 200) throw new Error(`${response.status}: ${bytes.toString()}`);
    return bytes;
  }

  put(path: string, body: RequestInit["body"], type: string = plain, init: RequestInit = {}) {
    const headers = { "content-type": type, ...(init.headers as Record<string, string>) };
    const sent = this.agent.request(`/v1/archive?${queryOf({ path })}`, {
      ...init,
      ...{ method: "PUT", body: body ?? null, headers },
    });
    return read(sent, unpackedSchema);
  }
}

/** One line for each entry: name as raw bytes, kind, mode, time to the nanosecond, contents or target, hard links. */
export function treeOf(root: string, { times = true } = {}): string[] {
  const inodes = new Map<bigint, string>();
  const lines: string[] = [];
  const describe = (path: Buffer, shown: string) => {
    const status = lstatSync(path, { bigint: true });
    const mode = (Number(status.mode) & 0o7777).toString(8);
    const time = times ? String(status.mtimeNs) : "";
    const fields = [shown, status.isSymbolicLink() ? "" : mode, time];
    if (status.isSymbolicLink()) {
      lines.push([...fields, "->", readlinkSync(path, "latin1")].join(" "));
    } else if (status.isFile()) {
      const first = inodes.get(status.ino) ?? shown;
      inodes.set(status.ino, first);
      const sum = createHash("sha256").update(readFileSync(path)).digest("hex").slice(0, 16);
      lines.push([...fields, status.size, sum, first].join(" "));
    } else {
      lines.push([...fields, status.isDirectory() ? "folder" : "other"].join(" "));
      if (!status.isDirectory()) return;
      const names = readdirSync(path, { encoding: "buffer" }).sort(Buffer.compare);
      for (const name of names) {
        const below = Buffer.concat([path, Buffer.from("/"), name]);
        describe(below, `${shown}/${name.toString("latin1")}`);
      }
    }
  };
  describe(Buffer.from(join(root)), ".");
  return lines;
}
