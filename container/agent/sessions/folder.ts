/**
 * The folder of the named pipes and files that sessions' shells open. Commands can open an entry if they know its random
 * name; only the agent can list, create or remove entries.
 */
import { chmodSync, chownSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeFifo, type User } from "../kernel/libc.ts";
import { randomWord } from "./script.ts";

const [folderMode, fileMode] = [0o711, 0o600];

export class SessionFolder {
  readonly #path: string;
  readonly #user: User | undefined;

  /** Entries belong to `user`; undefined: to the agent's own. */
  constructor(path: string, user: User | undefined) {
    this.#path = path;
    this.#user = user;
  }

  /** The same folder for the shell of another user. */
  for(user: User | undefined): SessionFolder {
    return new SessionFolder(this.#path, user);
  }

  /** Calls `open` while the pipe still belongs to the agent, so that no other process can have opened it before. */
  createFifo(open: (path: string) => void): string {
    return this.#create((path) => {
      makeFifo(path, fileMode);
      open(path);
    });
  }

  createFile(bytes: Uint8Array): string {
    return this.#create((path) => writeFileSync(path, bytes, { flag: "wx", mode: fileMode }));
  }

  remove(path: string): void {
    rmSync(path, { force: true });
  }

  #create(create: (path: string) => void): string {
    // Every time: if commands run as the agent's own user, one of them may have removed the folder.
    mkdirSync(this.#path, { recursive: true });
    chmodSync(this.#path, folderMode);
    const path = join(this.#path, randomWord());
    try {
      create(path);
      if (this.#user !== undefined) chownSync(path, this.#user.uid, this.#user.gid);
      return path;
    } catch (error) {
      this.remove(path);
      throw error;
    }
  }
}
