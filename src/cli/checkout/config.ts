/**
 * Owns the configuration of a checkout: which file it is, what it says, and the hash that tells when it changed.
 * Does not own its form (config-schema.ts).
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { basename, dirname, extname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { parse as parseToml } from "smol-toml";
import type { z } from "zod";
import { Failure } from "../failure.ts";
import { type Config, configSchema } from "./config-schema.ts";

export type FoundConfig = {
  /** Relative to the root, with slashes; nothing where there is no file. */
  file: string | undefined;
  /** As scopes have it: empty for the usual file and for none, so that adding one is a change and not another sandbox. */
  scope: string;
  content: Config;
  hash: string | undefined;
};

const usualFiles = [".berth/sandbox.json", ".berth/sandbox.toml"];
const fileBytesMax = 256 * 1024;

export function readConfig(root: string, cwd: string, asked: string | undefined): FoundConfig {
  const file = asked === undefined ? usualFile(root) : askedFile(root, cwd, asked);
  if (file === undefined) return { file, scope: "", content: {}, hash: undefined };
  const content = check(file, parse(file, read(join(root, file))));
  return { file, scope: usualFiles.includes(file) ? "" : file, content, hash: hashOf(content) };
}

function usualFile(root: string): string | undefined {
  const found = usualFiles.filter((file) => existsSync(join(root, file)));
  if (found.length > 1) {
    throw new Failure(`there are both ${found.join(" and ")}`, {
      hint: "Keep one of them, or say which by --config.",
      code: "bad_config",
    });
  }
  return found[0];
}

function askedFile(root: string, cwd: string, asked: string): string {
  const path = resolve(cwd, asked);
  if (!existsSync(path)) {
    throw new Failure(`--config: there is no file ${asked}`, { code: "bad_config" });
  }
  const file = relative(root, join(realpathSync(dirname(path)), basename(path)));
  if (file.startsWith("..") || isAbsolute(file)) {
    throw new Failure(`--config: ${asked} lies outside of the checkout`, {
      hint: "It is named relative to the repository, so that every machine means the same one.",
      code: "bad_config",
    });
  }
  return file.split(sep).join("/");
}

function read(path: string): string {
  const text = readFileSync(path, "utf8");
  if (text.length > fileBytesMax) {
    throw new Failure(`${path} is larger than ${fileBytesMax} bytes`, { code: "bad_config" });
  }
  return text;
}

function parse(file: string, text: string): unknown {
  const isToml = extname(file) === ".toml";
  try {
    return isToml ? parseToml(text) : JSON.parse(text);
  } catch (error) {
    const [why] = (error as Error).message.split("\n");
    throw new Failure(`${file} is not ${isToml ? "TOML" : "JSON"}: ${why}`, {
      code: "bad_config",
      cause: error,
    });
  }
}

function check(file: string, written: unknown): Config {
  const read = configSchema.safeParse(written);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new Failure(`${file}: ${issue === undefined ? "has a fault" : inWords(issue)}`, {
    hint: `It may hold ${Object.keys(configSchema.shape).join(", ")}.`,
    code: "bad_config",
  });
}

function inWords(issue: z.core.$ZodIssue): string {
  if (issue.code === "unrecognized_keys") {
    const place = issue.path.length === 0 ? "" : `${issue.path.join(".")}: `;
    return `${place}there is no ${issue.keys.map((key) => `\`${key}\``).join(", ")}`;
  }
  return issue.path.length === 0 ? issue.message : `${issue.path.join(".")}: ${issue.message}`;
}

/** Of what it says, not of how it is written: order, spaces and comments do not count, nor JSON or TOML. */
export function hashOf(content: Config): string {
  return createHash("sha256").update(canonical(content)).digest("hex").slice(0, 16);
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const entries = Object.entries(value)
    .filter(([, inner]) => inner !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([name, inner]) => `${JSON.stringify(name)}:${canonical(inner)}`).join(",")}}`;
}
