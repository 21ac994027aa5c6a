/** Reads the configuration of a checkout: which file, its content, and a hash that shows when it has changed. */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { Failure } from "../failure.ts";
import type { Config } from "./config-content.ts";

export type FoundConfig = {
  /** Relative to the root, with slashes; undefined if there is no file. */
  file: string | undefined;
  /**
   * The part of the scope: empty for the default file and for none, so that adding the file does not make another
   * sandbox.
   */
  scope: string;
  content: Config;
  hash: string | undefined;
};

const defaultFiles = [".berth/sandbox.json", ".berth/sandbox.toml"];
const fileBytesMax = 256 * 1024;

export async function readConfig(
  root: string,
  cwd: string,
  given: string | undefined,
): Promise<FoundConfig> {
  const file = given === undefined ? findDefaultFile(root) : resolveGivenFile(root, cwd, given);
  if (file === undefined) return { file, scope: "", content: {}, hash: undefined };
  // Most checkouts have no file, and loading what checks one takes 20 ms.
  const { parseConfig } = await import("./config-content.ts");
  const content = parseConfig(file, read(join(root, file)));
  return { file, scope: defaultFiles.includes(file) ? "" : file, content, hash: hashOf(content) };
}

function findDefaultFile(root: string): string | undefined {
  const found = defaultFiles.filter((file) => existsSync(join(root, file)));
  if (found.length > 1) {
    throw new Failure(`Both ${found.join(" and ")} exist.`, {
      hint: "Keep one of them, or choose one with `--config`.",
      code: "bad_config",
    });
  }
  return found[0];
}

function resolveGivenFile(root: string, cwd: string, given: string): string {
  const path = resolve(cwd, given);
  if (!existsSync(path)) {
    throw new Failure(`\`--config\`: ${given} does not exist.`, { code: "bad_config" });
  }
  const file = relative(root, join(realpathSync(dirname(path)), basename(path)));
  if (file.startsWith("..") || isAbsolute(file)) {
    throw new Failure(`\`--config\`: ${given} is outside of the checkout.`, {
      hint: "The file must be in the repository, so that every machine uses the same one.",
      code: "bad_config",
    });
  }
  return file.split(sep).join("/");
}

function read(path: string): string {
  const text = readFileSync(path, "utf8");
  if (text.length > fileBytesMax) {
    throw new Failure(`${path} is larger than ${fileBytesMax} bytes.`, { code: "bad_config" });
  }
  return text;
}

/** Hashes the content and not its form: order, spaces, comments, JSON or TOML make no difference. */
function hashOf(content: Config): string {
  return createHash("sha256").update(canonicalJson(content)).digest("hex").slice(0, 16);
}

function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const entries = Object.entries(value)
    .filter(([, inner]) => inner !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([name, inner]) => `${JSON.stringify(name)}:${canonicalJson(inner)}`).join(",")}}`;
}
