/**
 * Owns the folder in which what is handed to a session's shell has a name: commands can open what they know the name
 * of, and only the agent can list, make or remove. Does not own what lies in it: each thing has one owner.
 */
import { chmodSync, chownSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeFifo, type User } from "../kernel/libc.ts";
import { drawWord } from "./random-word.ts";

const [folderMode, fileMode] = [0o711, 0o600];

export class Folder {
  readonly #path: string;
  readonly #user: User | undefined;

  /** `user` is the one that everything in it is for; undefined: the agent's own. */
  constructor(path: string, user: User | undefined) {
    this.#path = path;
    this.#user = user;
  }

  /** `open` is called while it is still the agent's own: nobody else can have opened it before. */
  fifo(open: (path: string) => void): string {
    return this.#make((path) => {
      makeFifo(path, fileMode);
      open(path);
    });
  }

  file(bytes: Uint8Array): string {
    return this.#make((path) => writeFileSync(path, bytes, { flag: "wx", mode: fileMode }));
  }

  remove(path: string): void {
    rmSync(path, { force: true });
  }

  #make(make: (path: string) => void): string {
    // Each time: where commands are the agent's own user, one of them may have removed it.
    mkdirSync(this.#path, { recursive: true });
    chmodSync(this.#path, folderMode);
    const path = join(this.#path, drawWord());
    try {
      make(path);
      if (this.#user !== undefined) chownSync(path, this.#user.uid, this.#user.gid);
      return path;
    } catch (error) {
      this.remove(path);
      throw error;
    }
  }
}
