import { spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Agent, isRoot } from "../agent.ts";
import { codeOf, Files } from "./files.ts";
import { attacks, isForeign } from "./path-attacks.ts";

const secretText = "words that no command may read";
describe("attacks by path on the files of an agent", () => {
  const closed = mkdtempSync(join(tmpdir(), "berth-closed-"));
  const server = createServer();
  const agent = Agent.forBlock({ tree: "subreaper" });
  const files = new Files(agent);
  beforeAll(async () => {
    writeFileSync(join(closed, "secret"), secretText, { mode: 0o600 });
    chmodSync(closed, 0o700);
    const made = await agent.sh(
      [
        "echo text > file; mkdir folder; mkfifo fifo; ln -s fifo to-fifo; ln -s loop loop",
        `ln -s ${closed} to-closed; ln -s ${closed}/secret to-secret; ln -s / to-root`,
        "ln -s /proc to-proc; ln -s file c0",
        "for i in $(seq 41); do ln -s c$((i-1)) c$i; done; ln -s c41 long-chain",
      ].join("; "),
    );
    expect(made).toMatchObject({ exitCode: 0, stderr: "" });
    await new Promise<void>((done) => server.listen(join(agent.workspace, "socket"), done));
  });
  afterAll(async () => {
    await new Promise((done) => server.close(done));
    expect(readFileSync(join(closed, "secret"), "utf8")).toBe(secretText);
    rmSync(closed, { recursive: true });
  });

  const runs = isRoot ? attacks : attacks.filter(([path]) => !path.includes("@"));

  test("[I20] there are at least forty attacks, and a plain path works", async () => {
    expect(runs.length).toBeGreaterThanOrEqual(40);
    expect(await files.text("file")).toBe("text\n");
    expect(await files.text("to-root".concat(join(agent.workspace, "file")))).toBe("text\n");
  });

  test.each(runs)("[I20] reading %s reaches nothing and says why", async (attack, codes) => {
    const path = attack.replace("@", closed);
    const response = await files.get(path);
    const body = await response.clone().text();
    expect(body).not.toContain(secretText);
    expect(body).not.toContain(agent.secret);
    expect(codes, body).toContain(await codeOf(response));
  });

  const foreign = runs.filter(([path]) => isForeign(path));

  test.each(foreign)("[I20] writing and removing %s reaches nothing", async (attack) => {
    const path = attack.replace("@", closed);
    const put = await files.put(path, "overwritten");
    expect([put.status < 500, put.value], JSON.stringify(put)).toEqual([true, undefined]);
    const removed = await files.remove(path, { recursive: true });
    const refused = [removed.status < 500, removed.value];
    expect(refused, JSON.stringify(removed)).toEqual([true, undefined]);
    expect(readFileSync(join(closed, "secret"), "utf8")).toBe(secretText);
  });

  test.runIf(isRoot)(
    "[I21] a link that is swapped a thousand times during reads and writes never leads outside",
    async () => {
      const swapped = join(agent.workspace, "swapped");
      writeFileSync(join(agent.workspace, "mine"), "of the command");
      chmodSync(join(agent.workspace, "mine"), 0o666);
      const swapper = spawn("perl", [
        "-e",
        `$|=1; symlink("mine", "${swapped}"); print "up\\n";
       for ($i = 0; ; $i++) {
         symlink($i % 2 ? "mine" : "${closed}/secret", "${swapped}.new"); rename("${swapped}.new", "${swapped}");
       }`,
      ]);
      try {
        await new Promise((up) => swapper.stdout.once("data", up));
        const seen = { mine: 0, refused: 0 };
        for (let n = 0; n < 1000; n += 1) {
          const response = await files.get("swapped");
          const text = await response.text();
          expect(text).not.toContain(secretText);
          if (response.status === 200) {
            expect(text).toBe("of the command");
            seen.mine += 1;
          } else {
            expect(text).toContain("file_forbidden");
            seen.refused += 1;
          }
          if (n % 10 === 0) await files.send("swapped", "of the command");
        }
        expect(seen.mine).toBeGreaterThan(10);
        expect(seen.refused).toBeGreaterThan(10);
      } finally {
        const ended = new Promise((end) => swapper.once("exit", end));
        swapper.kill("SIGKILL");
        await ended;
      }
      expect(readFileSync(join(closed, "secret"), "utf8")).toBe(secretText);
      for (const path of [swapped, `${swapped}.new`])
        if (spawnSync("test", ["-L", path]).status === 0) unlinkSync(path);
      expect(existsSync(swapped)).toBe(false);
    },
  );

  test.runIf(isRoot)(
    "[I20] a folder that only root may write to takes no file, and none is made there",
    async () => {
      const foreign = mkdtempSync(join(tmpdir(), "berth-foreign-"));
      chmodSync(foreign, 0o755);
      writeFileSync(join(foreign, "readable"), "readable");
      symlinkSync(foreign, join(agent.workspace, "to-foreign"));
      for (const path of [`${foreign}/new`, "to-foreign/new", "to-foreign/readable"]) {
        expect((await files.put(path, "x")).code, path).toBe("file_forbidden");
      }
      expect(await files.text("to-foreign/readable")).toBe("readable");
      const changes = await Promise.all([
        files.mkdir({ path: "to-foreign/a/b", parents: true }),
        files.move({ from: "to-foreign/readable", to: "taken" }),
        files.remove("to-foreign/readable"),
      ]);
      for (const { code } of changes) expect(code).toBe("file_forbidden");
      expect(readFileSync(join(foreign, "readable"), "utf8")).toBe("readable");
      rmSync(foreign, { recursive: true });
    },
  );
});
