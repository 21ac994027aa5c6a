/** What a run of the command loads: every module costs time in each of its runs. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../../../container/launch/paths.js";
import { commandNames } from "../../../src/cli/commands.ts";

const staticImport = /^(?:import|export)(?!\s+type\b)(?:[^;"]*\sfrom)?\s*"([^"]+)"/gm;

/** The files and packages that are loaded with these files, before any of their code runs. */
function loadedWith(...paths: string[]): Set<string> {
  const loaded = new Set<string>();
  const queue = paths.map((path) => join(root, path));
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    if (loaded.has(path)) continue;
    loaded.add(path);
    if (!existsSync(path) || !path.endsWith(".ts")) continue;
    for (const [, name = ""] of readFileSync(path, "utf8").matchAll(staticImport)) {
      queue.push(name.startsWith(".") ? join(dirname(path), name) : name);
    }
  }
  return loaded;
}

/** Slow to load, or only of use to some runs. An import of `node:http` evaluates its exports: a second HTTP client. */
const late = ["zod", "smol-toml", "ws", "@bomb.sh/tab/commander", "yocto-spinner"];
const neverImported = ["node:http", "node:https", "node:tls"];

it.each(["exec", "run", "list", "lock", "push", "ps"])(
  "[CL41] `%s` loads no schemas, no second HTTP client and no other command",
  (name) => {
    expect(commandNames).toContain(name);
    const own = `src/cli/commands/${name}.ts`;
    const loaded = loadedWith("src/cli/main.ts", own);
    expect(loaded.size).toBeGreaterThan(30);
    for (const module of [...late, ...neverImported]) expect(loaded).not.toContain(module);
    const commands = [...loaded].filter((path) => path.startsWith(join(root, "src/cli/commands/")));
    expect(commands).toEqual([join(root, own)]);
  },
);
