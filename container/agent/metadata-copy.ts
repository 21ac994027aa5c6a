/**
 * Writes the copy of the sandbox's metadata that programs inside can read: one file, replaced atomically, never by an
 * older version. The object sends the metadata again to each incarnation.
 */
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { BerthError } from "../../src/protocol/error-codes.ts";
import type { AgentMetadata } from "../../src/protocol/internal/agent.ts";
import { limits } from "../../src/protocol/limits.ts";
import { agentFolder } from "../engine/jail/identity.ts";
import { readJson } from "./server/body.ts";

export const metadataFolder = agentFolder;

const fileName = "metadata.json";
const [folderMode, fileMode] = [0o755, 0o644];
const permissions = 0o7777;

/** JSON may write one byte as six; the rest is for quotes, commas and the version. */
const bodyBytesMax = 8 * limits.metadataBytesMax;

export async function handleMetadata(request: Request, copy: MetadataCopy): Promise<Response> {
  const metadata = await readJson<AgentMetadata>(request, bodyBytesMax);
  return Response.json({ version: copy.update(metadata) });
}

export class MetadataCopy {
  readonly folder: string;
  #version = 0;

  /** Version 0 is what a sandbox begins with; it also replaces what an earlier incarnation left here. */
  constructor(folder: string) {
    this.folder = folder;
    try {
      this.#write({ version: 0, metadata: {} });
    } catch (error) {
      // Commands run without the copy. The next update tries again, and fails visibly.
      console.error(`no copy of the metadata in ${folder}:`, error);
    }
  }

  /** Returns the version that the copy has afterwards. */
  update(metadata: AgentMetadata): number {
    if (metadata.version > this.#version) {
      try {
        this.#write(metadata);
      } catch (error) {
        const { code = "unknown" } = error as NodeJS.ErrnoException;
        throw new BerthError("unavailable", `${this.folder} cannot be written (${code}).`, {
          hint: "The copy stays behind until the metadata changes again or the container restarts.",
        });
      }
      this.#version = metadata.version;
    }
    return this.#version;
  }

  /**
   * Readers see the old file or the new one. Where commands run as the agent's own user, they may have put anything in
   * the way; it is removed.
   */
  #write({ version, metadata }: AgentMetadata): void {
    secureFolder(this.folder);
    const file = join(this.folder, fileName);
    const temporary = join(this.folder, `.${fileName}.new`);
    remove(temporary);
    try {
      const text = `${JSON.stringify({ version, metadata })}\n`;
      // `wx` never writes through a link that was put there meanwhile.
      writeFileSync(temporary, text, { flag: "wx", mode: fileMode });
      chmodSync(temporary, fileMode);
      if (statusOf(file)?.isDirectory()) remove(file);
      renameSync(temporary, file);
    } catch (error) {
      remove(temporary);
      throw error;
    }
  }
}

/** Makes it a real folder of the agent's own, in which no other user can add or replace a file. */
function secureFolder(folder: string): void {
  const status = statusOf(folder);
  if (status?.isDirectory() !== true || status.uid !== process.getuid?.()) {
    remove(folder);
    mkdirSync(folder);
  } else if ((status.mode & permissions) === folderMode) {
    return;
  }
  // The umask may have narrowed the mode, or a process of the same user may have changed it.
  chmodSync(folder, folderMode);
}

function statusOf(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

/** Removes a link itself, not its target. */
function remove(path: string): void {
  rmSync(path, { recursive: true, force: true });
}
