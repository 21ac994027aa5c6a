import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { root } from "../../../container/launch/places.js";
import { cleanEnvironment, startServer } from "../server.ts";

/** These go on until somebody ends them, or need what only the reader has. */
const others = /files\/watch|events\?follow|git\/clone|first\.mjs/;
const local = "http://127.0.0.1:8787";
const between = "-- next --";

describe("the page on using it", () => {
  it("[SD13] its calls do what it says, made in one shell one after the other as they stand there", async () => {
    await using server = await startServer();
    const folder = mkdtempSync(join(tmpdir(), "berth-page-"));
    try {
      const page = readFileSync(join(root, "docs/using.md"), "utf8");
      const blocks = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = ""]) => block);
      const lines = blocks.flatMap((block) => block.trim().split("\n"));
      const calls = lines.filter((line) => !others.test(line));
      expect(calls.length).toBeGreaterThan(60);
      const script = calls
        .map((line) => `${line}\necho; echo '${between}'`)
        .join("\n")
        .replaceAll(local, server.url)
        .replaceAll("$(cat .berth/key)", server.key);
      writeFileSync(join(folder, "report.pdf"), "a report");
      const { stdout } = await promisify(execFile)("bash", ["-c", script], {
        ...{ cwd: folder, env: cleanEnvironment({}), timeout: 120_000, maxBuffer: 2 ** 24 },
      });
      const answers = stdout.split(between).slice(0, -1);
      expect(answers).toHaveLength(calls.length);
      const failed = calls.filter((_, at) => answers[at]?.includes('{"error":'));
      // The one that is to be refused.
      expect(failed).toEqual([expect.stringContaining("# 423: without the token")]);
      expect(answers.at(-1)).toContain('"state":"destroyed"');
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
