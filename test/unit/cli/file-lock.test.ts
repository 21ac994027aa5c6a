import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { withFileLock } from "../../../src/cli/state/file-lock.ts";
import { until } from "../../until.ts";

const lockModule = new URL("../../../src/cli/state/file-lock.ts", import.meta.url).href;

/** Increments a number in a file repeatedly: read, wait a little, write. */
const adder = `
  import { readFileSync, writeFileSync } from "node:fs";
  import { withFileLock } from ${JSON.stringify(lockModule)};
  const [folder, times] = process.argv.slice(1);
  for (let n = 0; n < Number(times); n++) {
    withFileLock(folder + "/lock", 50_000, () => {
      const before = Number(readFileSync(folder + "/number", "utf8"));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
      writeFileSync(folder + "/number", String(before + 1));
    });
  }
`;

/** Takes the lock and holds it. */
const keeper = `
  import { withFileLock } from ${JSON.stringify(lockModule)};
  withFileLock(process.argv[1] + "/lock", 50_000, () => {
    process.stdout.write("held\\n");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000);
  });
`;

describe("the file lock", () => {
  let folder: string;
  const started: ChildProcess[] = [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "berth-lock-"));
  });
  afterEach(() => {
    for (const child of started) child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });

  const run = (code: string, ...args: string[]) => {
    const child = spawn(process.execPath, ["--input-type=module", "-e", code, folder, ...args], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    started.push(child);
    return child;
  };

  it("[CL17] concurrent changes do not undo each other", async () => {
    writeFileSync(join(folder, "number"), "0");
    const all = Array.from({ length: 8 }, () => run(adder, "25"));
    const codes = await Promise.all(all.map(async (child) => (await once(child, "close"))[0]));
    expect(codes).toEqual(Array(8).fill(0));
    expect(readFileSync(join(folder, "number"), "utf8")).toBe("200");
    // One number is left, however high it is.
    expect(readdirSync(folder).filter((name) => /^lock\.\d+$/.test(name))).toHaveLength(1);
  });

  it("[CL17] a running holder blocks others, a killed one does not", async () => {
    writeFileSync(join(folder, "number"), "0");
    const holder = run(keeper);
    await once(holder.stdout ?? holder, "data");
    expect(() => withFileLock(join(folder, "lock"), 50, () => {})).toThrow(`${holder.pid}`);
    const waiting = Array.from({ length: 4 }, () => run(adder, "5"));
    const waited = Promise.all(waiting.map((child) => once(child, "close")));
    expect(readFileSync(join(folder, "number"), "utf8")).toBe("0");
    holder.kill("SIGKILL");
    await once(holder, "close");
    await waited;
    await until(
      "all have had their turn",
      () => readFileSync(join(folder, "number"), "utf8") === "20",
    );
  });
});
