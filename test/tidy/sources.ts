/** Reads every file of the project, for the tidy checks. */
import { lstatSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../container/launch/paths.js";
import { sourceFiles } from "../system/server/checkout.ts";

export type Source = { path: string; text: string };

export function allSources(): Source[] {
  return sourceFiles()
    .filter((path) => lstatSync(join(root, path)).isFile())
    .map((path) => ({ path, text: textOf(path) }));
}

/** The bytes of a picture are no text, and would be taken for any. */
function textOf(path: string): string {
  return path.endsWith(".png") ? "" : readFileSync(join(root, path), "utf8");
}

export function isCode({ path }: Source): boolean {
  return /\.(ts|js)$/.test(path);
}

/** Without comments, for rules on what code does and not on what it says. */
export function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/(^|\s)\/\/.*$/gm, "$1");
}
