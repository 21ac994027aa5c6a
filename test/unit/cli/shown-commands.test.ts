import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../../../container/launch/paths.js";
import { commandNames } from "../../../src/cli/commands.ts";

/** A command line in the page: the text to copy, or the first step of an empty table. */
const shownLine = /(?:command=\{?["`]|<pre>|<code>)berth ([\w-]+)/g;

it("[DB14] each command that the dashboard shows exists", () => {
  const folder = join(root, "src/dashboard");
  const shown = globSync("**/*.tsx", { cwd: folder }).flatMap((path) =>
    [...readFileSync(join(folder, path), "utf8").matchAll(shownLine)].map(([, name]) => name),
  );
  expect(shown.length).toBeGreaterThan(10);
  expect(shown.filter((name) => !commandNames.includes(name ?? ""))).toEqual([]);
});
