/**
 * Runs every shell block of the guide and the README against a real server, page by page, as a reader would type it.
 */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { root, tools } from "../../../container/launch/paths.js";
import { newFolder } from "../../new-folder.ts";
import { CliUser } from "../cli/cli-user.ts";
import { cleanEnvironment } from "../server.ts";
import { useSharedServer } from "../shared-server.ts";

const guide = join(root, "docs/guide");
const separator = "-- next --";

const blocksOf = (path: string) =>
  [...readFileSync(path, "utf8").matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = ""]) =>
    block.trim(),
  );
const shellBlocks = (page: string) => blocksOf(join(guide, page));

/** Every page assumes the helpers that the quickstart defines. */
const [helpers = ""] = shellBlocks("quickstart.md");
const pages = readdirSync(guide).filter((page) => shellBlocks(page).length > 0);

describe("the guide", () => {
  it("[SD13] has commands on its pages", () => {
    expect(pages.length).toBeGreaterThan(10);
  });

  it.each(pages)("[SD13] every command of %s does what the page says", async (page) => {
    await using server = await useSharedServer();
    const folder = newFolder("guide");
    const blocks = shellBlocks(page).filter((block) => block !== helpers);
    const lines = blocks.flatMap((block) => block.split("\n"));
    const script = [helpers, ...lines.map((line) => `${line}\necho; echo '${separator}'`)]
      .join("\n")
      .replaceAll("http://127.0.0.1:8787", server.url)
      .replaceAll("$(cat .berth/key)", server.key);
    const { stdout } = await promisify(execFile)("bash", ["-c", script], {
      ...{ cwd: folder, env: cleanEnvironment({}), timeout: 120_000, maxBuffer: 2 ** 24 },
    });
    const results = stdout.split(separator).slice(0, -1);
    expect(results).toHaveLength(lines.length);
    const refused = lines.filter((_, index) => results[index]?.includes('{"error":'));
    const expected = lines.filter((line) => line.includes("# 423"));
    expect(refused).toEqual(expected);
    expect(results.at(-1)).toMatch(/"state":"destroy/);
  });

  it("[SD13] the first session of the README works in a checkout", async () => {
    await using server = await useSharedServer();
    using user = new CliUser(server);
    const cwd = user.repo("app");
    const [session = ""] = blocksOf(join(root, "README.md"));
    expect(session).toContain("berth exec");
    const alias = "alias berth='npm run --silent berth --'";
    const command = `berth() { '${tools.node}' '${join(root, "src/cli/main.ts")}' "$@"; }`;
    const script = `set -e\n${session.replace(alias, command)}`;
    const { stdout } = await promisify(execFile)("bash", ["-c", script], {
      ...{ cwd, env: user.environment, timeout: 120_000 },
    });
    expect(readdirSync(cwd)).toContain("now.txt");
    expect(stdout).toContain("http");
  });

  it("[SD13] the shell blocks for operators run", async () => {
    const [block = ""] = blocksOf(join(root, "docs/operate/one-machine.md"));
    const { stdout } = await promisify(execFile)("bash", ["-c", block], { timeout: 30_000 });
    expect(stdout).toMatch(/^berth_ci_\S+ ci:[0-9a-f]{64}\n$/);
  });
});
