/**
 * Owns the copy of the sandbox's metadata that programs inside can read: one file, replaced whole, never older.
 * Does not own the truth: the object does, and tells it again to each life of the agent.
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

export const metadataFolder = "/run/berth";

const fileName = "metadata.json";
const [folderMode, fileMode] = [0o755, 0o644];
const permissions = 0o7777;

export class MetadataCopy {
  readonly folder: string;
  #version = 0;

  /** Version 0 is what a sandbox begins with; it also takes the place of what an earlier life left here. */
  constructor(folder: string) {
    this.folder = folder;
    try {
      this.#write({ version: 0, metadata: {} });
    } catch (error) {
      // Commands run all the same. The next telling tries again, and says so if it fails.
      console.error(`no copy of the metadata in ${folder}:`, error);
    }
  }

  /** The version that the copy has then. */
  follow(told: AgentMetadata): number {
    if (told.version > this.#version) {
      try {
        this.#write(told);
      } catch (error) {
        const { code = "unknown" } = error as NodeJS.ErrnoException;
        throw new BerthError("unavailable", `${this.folder} cannot be written (${code})`, {
          hint: "the copy is behind until the metadata is told again",
        });
      }
      this.#version = told.version;
    }
    return this.#version;
  }

  /** Readers see the old file or the new one. One user for all could have put anything in the way: it goes. */
  #write({ version, metadata }: AgentMetadata): void {
    takeFolder(this.folder);
    const file = join(this.folder, fileName);
    const fresh = join(this.folder, `.${fileName}.new`);
    remove(fresh);
    try {
      const text = `${JSON.stringify({ version, metadata })}\n`;
      // Only where nothing is: never through a link that was put there meanwhile.
      writeFileSync(fresh, text, { flag: "wx", mode: fileMode });
      chmodSync(fresh, fileMode);
      if (statusOf(file)?.isDirectory()) remove(file);
      renameSync(fresh, file);
    } catch (error) {
      remove(fresh);
      throw error;
    }
  }
}

/** A real folder, of the agent's own, in which nobody else can put or replace a file. */
function takeFolder(folder: string): void {
  const status = statusOf(folder);
  if (status?.isDirectory() !== true || status.uid !== process.getuid?.()) {
    remove(folder);
    mkdirSync(folder);
  } else if ((status.mode & permissions) === folderMode) {
    return;
  }
  // Whatever the mask for new files is, or whoever shares the user made of it.
  chmodSync(folder, folderMode);
}

function statusOf(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

/** A link itself, not what it leads to. */
function remove(path: string): void {
  rmSync(path, { recursive: true, force: true });
}
