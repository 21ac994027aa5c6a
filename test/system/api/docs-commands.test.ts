/**
 * Runs every shell block of the guide against a real server, page by page, as a reader would type it.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { root } from "../../../container/launch/paths.js";
import { cleanEnvironment } from "../server.ts";
import { useSharedServer } from "../shared-server.ts";

const guide = join(root, "docs/guide");
const separator = "-- next --";

const shellBlocks = (page: string) =>
  [...readFileSync(join(guide, page), "utf8").matchAll(/```sh\n([\s\S]*?)```/g)].map(
    ([, block = ""]) => block.trim(),
  );

/** Every page assumes the helpers that the quickstart defines. */
const [helpers = ""] = shellBlocks("quickstart.md");
const pages = readdirSync(guide).filter((page) => shellBlocks(page).length > 0);

describe("the guide", () => {
  it("[SD13] has commands on its pages", () => {
    expect(pages.length).toBeGreaterThan(10);
  });

  it.each(pages)("[SD13] every command of %s does what the page says", async (page) => {
    await using server = await useSharedServer();
    const folder = mkdtempSync(join(tmpdir(), "berth-guide-"));
    try {
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
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
