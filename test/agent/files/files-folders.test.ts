import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { Agent } from "../agent.ts";
import { expectNothingLeft, Files } from "./files.ts";

describe("folders of files of an agent", () => {
  const agent = Agent.forBlock({ tree: "subreaper" });
  const files = new Files(agent);
  expectNothingLeft(agent, async () => {
    await files.put("warm", "");
    await files.get("warm");
  });
  const pathOf = (name: string) => join(agent.workspace, name);

  test("[I8] a folder is removed with all that it holds if the call says so; links are removed, not their targets", async () => {
    const outside = mkdtempSync(join(tmpdir(), "berth-outside-"));
    chmodSync(outside, 0o777);
    writeFileSync(join(outside, "precious"), "kept");
    await agent.sh("mkdir -p tree/a/b/c; touch tree/1 tree/a/2 tree/a/b/c/3");
    symlinkSync(outside, pathOf("tree/a/out"));
    expect(await files.remove("tree")).toMatchObject({ status: 409, code: "not_empty" });
    expect((await files.remove("tree", { recursive: true })).value).toEqual({ removed: 8 });
    expect(existsSync(pathOf("tree"))).toBe(false);
    expect(readFileSync(join(outside, "precious"), "utf8")).toBe("kept");
    expect((await files.remove("tree")).code).toBe("file_not_found");
    for (const path of ["/", ".", agent.workspace, `${agent.workspace}/../`]) {
      expect((await files.remove(path, { recursive: true })).code, path).toBe("bad_request");
    }
    rmSync(outside, { recursive: true });
  });

  test("[I8] a tree deeper than any path is removed while other calls run", async () => {
    const script =
      'mkdir "deep"; chdir "deep"; for (1..3000) { mkdir "d"; chdir "d" } print "made"';
    const made = await agent.exec({ argv: ["perl", "-e", script], timeoutMs: 50_000 });
    expect(made.stdout).toBe("made");
    expect((await files.remove("deep", { recursive: true })).value).toEqual({ removed: 3001 });
    expect(existsSync(pathOf("deep"))).toBe(false);
  });

  test("[I9] a list has every entry once, in the order of the names' bytes, whatever the pages", async () => {
    await agent.sh(
      `mkdir -p l/b l/a/x "l/ü" l/B; touch l/a/1 l/a/x/2 l/a.txt l/b/3 "l/$(printf '\\377')"; ln -s a l/link`,
    );
    const complete = (await files.list("l", { depth: 9 })).value;
    expect(complete?.nextCursor).toBe(null);
    const names = complete?.files.map(({ path }) => path.slice(pathOf("l/").length));
    const below = ["a/1", "a/x", "a/x/2"];
    expect(names).toEqual(["B", "a", ...below, "a.txt", "b", "b/3", "link", "ü", "\ufffd"]);
    expect(Buffer.from(complete?.files.at(-1)?.pathBase64 ?? "", "base64").at(-1)).toBe(255);
    expect(complete?.files[8]).toMatchObject({ kind: "link", target: "a" });
    for (const limit of [1, 2, 3, 10, 11]) {
      const paged: unknown[] = [];
      for await (const page of files.pages("l", { depth: 9, limit })) {
        expect(page.length).toBeLessThanOrEqual(limit);
        paged.push(...page);
      }
      expect(paged).toEqual(complete?.files);
    }
    expect((await files.list("l")).value?.files.length).toBe(7);
    expect((await files.list("warm")).code).toBe("not_a_folder");
    expect((await files.list("l", { cursor: "%" })).code).toBe("bad_request");
  });

  test("[I10] a hundred thousand entries are listed completely by pages while other calls run", async () => {
    const count = 100_000;
    await agent.sh(`mkdir many; cd many; seq -f 'f%06g' ${count} | xargs touch`);
    let longest = 0;
    let done = false;
    const asking = (async () => {
      while (!done) {
        const began = performance.now();
        await files.stat("warm");
        longest = Math.max(longest, performance.now() - began);
      }
    })();
    const seen: string[] = [];
    for await (const page of files.pages("many", { limit: limits.fileListPageMax })) {
      seen.push(...page.map(({ path }) => path));
    }
    expect(seen.length).toBe(count);
    expect(new Set(seen).size).toBe(count);
    expect((await files.remove("many", { recursive: true })).value).toEqual({ removed: count + 1 });
    done = true;
    await asking;
    expect(longest).toBeGreaterThan(0);
    expect(longest).toBeLessThan(5000);
  });

  test("[I11] folders are created, with missing parents if the call says so", async () => {
    const value = { kind: "folder", mode: "700", path: pathOf("f1") };
    expect(await files.mkdir({ path: "f1", mode: "700" })).toMatchObject({ status: 201, value });
    expect(await files.mkdir({ path: "f1" })).toMatchObject({ status: 409, code: "file_exists" });
    expect((await files.mkdir({ path: "f1", parents: true })).status).toBe(200);
    expect((await files.mkdir({ path: "f1/2/3" })).code).toBe("file_not_found");
    expect((await files.mkdir({ path: "f1/2/3", parents: true })).status).toBe(201);
    expect((await files.mkdir({ path: "warm", parents: true })).code).toBe("not_a_folder");
  });

  test("[I12] a move is atomic, overwrites only if allowed, and moves links themselves", async () => {
    await files.put("from", "1");
    await files.put("to", "2");
    expect((await files.move({ from: "from", to: "to" })).code).toBe("file_exists");
    expect([await files.text("from"), await files.text("to")]).toEqual(["1", "2"]);
    const moved = await files.move({ from: "from", to: "to", overwrite: true });
    expect(moved.value).toMatchObject({ path: pathOf("to"), size: 1 });
    expect(await files.text("to")).toBe("1");
    expect(existsSync(pathOf("from"))).toBe(false);
    symlinkSync("to", pathOf("alias"));
    expect((await files.move({ from: "alias", to: "other" })).value?.kind).toBe("link");
    await files.mkdir({ path: "folder" });
    expect((await files.move({ from: "folder", to: "folder/in" })).code).toBe("bad_request");
    const missing = { code: "file_not_found", field: "from" };
    expect((await files.move({ from: "nothing", to: "x" })).error).toMatchObject(missing);
  });
});
