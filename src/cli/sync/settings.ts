/**
 * Reads what else decides how git sees a checkout: settings, ignore lists and attributes outside of the tree. The
 * tree's own lists are files like others.
 */
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Repository } from "./repository.ts";

type GitSettings = {
  config: string;
  exclude: string;
  /** The repository's own attributes: they override those in the tree. */
  attributes: string;
  /** The user's attributes: those in the tree override them. */
  usual: string;
  shallow: string;
};

/** Settings that change what `git status` reports for the same files. */
const statusSettings =
  "^(core\\.(autocrlf|eol|safecrlf|filemode|symlinks|ignorecase|precomposeunicode)" +
  "|status\\.(renames|renamelimit|showuntrackedfiles)|diff\\.(renames|renamelimit))$";

export async function readSettings(repository: Repository): Promise<GitSettings> {
  const { plain } = repository;
  const args = ["config", "--null", "--get-regexp"];
  const [pairs, excludes, attributes] = await Promise.all([
    plain.list([...args, statusSettings], { okCodes: [1] }),
    resolveSettingFile(repository, "core.excludesFile", "ignore"),
    resolveSettingFile(repository, "core.attributesFile", "attributes"),
  ]);
  return {
    config: formatConfig(pairs),
    exclude: `${readIfExists(excludes)}\n${readIfExists(repository.exclude)}`,
    attributes: readIfExists(repository.attributes),
    usual: readIfExists(attributes),
    shallow: readIfExists(repository.shallow),
  };
}

/** The last value of a name counts, in git's own order of files. */
function formatConfig(pairs: string[]): string {
  const values = new Map(pairs.map((pair) => splitPair(pair, pair.indexOf("\n"))));
  return [...values]
    .map(([name, value]) => {
      const dot = name.indexOf(".");
      const text = value.replace(/[\\"]/g, "\\$&");
      return `[${name.slice(0, dot)}]\n\t${name.slice(dot + 1)} = "${text}"\n`;
    })
    .join("");
}

/** A name without a value means true. */
function splitPair(pair: string, separator: number): [string, string] {
  return separator < 0 ? [pair, "true"] : [pair.slice(0, separator), pair.slice(separator + 1)];
}

/** The file that a setting names, or git's default. */
async function resolveSettingFile(
  { plain }: Repository,
  setting: string,
  file: string,
): Promise<string> {
  const args = ["config", "--null", "--path", setting];
  const { code, stdout } = await plain.run(args, { okCodes: [1] });
  if (code === 0) return stdout.toString().replace(/\0$/, "");
  return join(process.env.XDG_CONFIG_HOME || join(homedir(), ".config"), "git", file);
}

function readIfExists(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    // Most users have none.
    return "";
  }
}
