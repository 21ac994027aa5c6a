/**
 * Owns what else decides how git sees a checkout: settings, what is ignored by lists outside of the tree, attributes.
 * Does not own the tree's own lists: they are files like others.
 */
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Repository } from "./repository.ts";

export type Settings = {
  config: string;
  exclude: string;
  /** Of this repository alone: they win over those in the tree. */
  attributes: string;
  /** Of all repositories of the owner: those in the tree win over them. */
  usual: string;
  shallow: string;
};

/** Those that change what `git status` says of the same files. */
const telling =
  "^(core\\.(autocrlf|eol|safecrlf|filemode|symlinks|ignorecase|precomposeunicode)" +
  "|status\\.(renames|renamelimit|showuntrackedfiles)|diff\\.(renames|renamelimit))$";

export async function readSettings(repository: Repository): Promise<Settings> {
  const { plain } = repository;
  const asked = ["config", "--null", "--get-regexp"];
  const [pairs, excludes, attributes] = await Promise.all([
    plain.list([...asked, telling], { answers: [1] }),
    named(repository, "core.excludesFile", "ignore"),
    named(repository, "core.attributesFile", "attributes"),
  ]);
  return {
    config: written(pairs),
    exclude: `${contentOf(excludes)}\n${contentOf(repository.exclude)}`,
    attributes: contentOf(repository.attributes),
    usual: contentOf(attributes),
    shallow: contentOf(repository.shallow),
  };
}

/** The last value of a name counts, as in git's own order of files. */
function written(pairs: string[]): string {
  const values = new Map(pairs.map((pair) => splitAt(pair, pair.indexOf("\n"))));
  return [...values]
    .map(([name, value]) => {
      const dot = name.indexOf(".");
      const text = value.replace(/[\\"]/g, "\\$&");
      return `[${name.slice(0, dot)}]\n\t${name.slice(dot + 1)} = "${text}"\n`;
    })
    .join("");
}

/** A name alone means yes. */
function splitAt(pair: string, at: number): [string, string] {
  return at < 0 ? [pair, "true"] : [pair.slice(0, at), pair.slice(at + 1)];
}

/** The file that a setting names, else the one where git looks for it without. */
async function named({ plain }: Repository, setting: string, file: string): Promise<string> {
  const asked = ["config", "--null", "--path", setting];
  const { code, stdout } = await plain.run(asked, { answers: [1] });
  if (code === 0) return stdout.toString().replace(/\0$/, "");
  return join(process.env.XDG_CONFIG_HOME || join(homedir(), ".config"), "git", file);
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    // Most have none.
    return "";
  }
}
