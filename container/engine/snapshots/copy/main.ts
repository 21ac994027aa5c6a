/**
 * The program that copies saved trees of any depth: `<folder> <source>…` as arguments, one JSON document on stdout. It
 * is a separate program because the engine's user may not read all files, and because copying blocks a thread.
 */
import { mkdirSync, rmSync } from "node:fs";
import { basename } from "node:path";
import { escapePath } from "../../../../src/protocol/internal/escape-path.ts";
import { EntryError, TreeCopy } from "./tree-copy.ts";

/** A refused path may be of any length; its beginning is shown. */
const pathCharactersMax = 1000;
const [folder = "", ...sources] = process.argv.slice(2);

/** The first entry, as seen from inside a sandbox, that the kernel refuses to copy. */
function copyAll(): { code: string; path: string } | undefined {
  const links = `${folder}/links`;
  mkdirSync(links);
  const copy = new TreeCopy(links);
  for (const source of sources) {
    const name = basename(source);
    try {
      copy.copy(source, `${folder}/${name}`);
    } catch (error) {
      if (!(error instanceof EntryError)) throw error;
      return {
        code: error.code,
        path: escapePath(`${name}/${error.path}`.slice(0, pathCharactersMax)),
      };
    }
  }
  rmSync(links, { recursive: true });
  return undefined;
}

process.stdout.write(JSON.stringify({ refused: copyAll() }));
