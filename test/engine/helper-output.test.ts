/** Programs that the engine runs and that print far more than it keeps. */
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { newFolder } from "../new-folder.ts";
import { procFile } from "../system/processes.ts";
import { EnginesOfTest, identities, newId, run } from "./test-engine.ts";

const MiB = 1024 * 1024;
const printedBytes = 100_000_000;
const growthBytesMax = 128 * MiB;

/** Prints a size in the form of `du`, then much on both streams, and fails while its mark is there. */
const noisy = (mark: string) => `#!/bin/sh
echo 4096
head -c ${printedBytes} /dev/zero | tr '\\0' o
head -c ${printedBytes} /dev/zero | tr '\\0' e >&2
test ! -e ${mark}
`;

describe.each(identities())("helper programs of an engine that is %s", (as) => {
  const engines = new EnginesOfTest(as);

  it("[R48] may print without end: the engine keeps the beginning, and its memory and errors stay small", async () => {
    const folder = newFolder("helpers");
    chmodSync(folder, 0o755);
    const mark = join(folder, "fails");
    writeFileSync(join(folder, "du"), noisy(mark), { mode: 0o755 });
    const engine = await engines.start({ PATH: `${folder}:${process.env.PATH}` });
    const sandbox = await run(engine);
    engines.remember(engine);
    const peakBytes = () => {
      const status = procFile(engine.child.pid ?? 0, "status");
      return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) * 1024;
    };
    const before = peakBytes();
    expect((await sandbox.container.snapshot(newId())).bytes).toBe(4096);
    mkdirSync(mark);
    const logged = engine.log().length;
    const error = await sandbox.container.snapshot(newId()).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "internal" });
    expect(String(error).length).toBeLessThan(1_000);
    expect(engine.log().slice(logged)).toContain("failed (exit code 1): eeee");
    expect(engine.log().length - logged).toBeLessThan(5_000);
    const growthBytes = peakBytes() - before;
    console.log(JSON.stringify({ as, growthMiB: Math.round(growthBytes / MiB) }));
    expect(growthBytes).toBeLessThan(growthBytesMax);
  });
});
