/** Lives that do not end, and copies that take long: what holds up one sandbox holds up no other. */
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  identities,
  newData,
  newId,
  removeData,
  run,
  startEngine,
  type TestEngine,
  tracesOf,
  until,
} from "./test-engine.ts";

/** As many as are copied at once. */
const restoresAtOnce = 8;

describe.each(identities())("what takes long under an engine that is %s", (as) => {
  let data: string;
  let engine: TestEngine;

  beforeEach(() => {
    data = newData(as);
  });

  afterEach(async () => {
    const processes = engine.processes();
    expect(processes.length).toBeGreaterThan(0);
    await engine.stop();
    expect(tracesOf(data, processes)).toEqual([]);
    removeData(data);
  });

  it("[R40] while a life does not end nothing else begins on its files, however often it is asked for", async () => {
    const shortDestroy = new URL("short-destroy.ts", import.meta.url).pathname;
    engine = await startEngine(as, { data, env: { BUN_OPTIONS: `--preload=${shortDestroy}` } });
    const one = await run(engine);
    await one.sh("echo kept > /workspace/file");
    const [outer = 0] = engine.processes();
    // Stopped, it does not collect its agent: to the engine a life that the kernel does not let go of.
    process.kill(outer, "SIGSTOP");
    for (const _again of [1, 2, 3]) {
      await expect(run(engine, { id: one.id })).rejects.toThrow();
      await expect(one.container.destroy("remove")).rejects.toThrow();
    }
    expect(existsSync(`${data}/trees/${one.id}/workspace/file`)).toBe(true);
    process.kill(outer, "SIGCONT");
    const again = await run(engine, { id: one.id });
    expect(again.started.files).toBe("kept");
    expect((await again.sh("cat /workspace/file")).stdout).toBe("kept\n");
  });

  it("[R41] starts that copy large trees hold up no other start, and one that waits for its turn is ended at once", async () => {
    const folder = mkdtempSync(join(tmpdir(), "berth-slow-"));
    const hold = join(folder, "hold");
    const slow = `#!/bin/sh\nwhile [ -e ${hold} ]; do sleep 0.05; done\nexec /bin/cp "$@"\n`;
    writeFileSync(join(folder, "cp"), slow, { mode: 0o755 });
    chmodSync(folder, 0o755);
    try {
      const PATH = `${folder}:${process.env.PATH}`;
      engine = await startEngine(as, { data, env: { PATH } });
      const one = await run(engine);
      await one.sh("echo saved > /workspace/file");
      const snapshot = newId();
      await one.container.snapshot(snapshot);
      writeFileSync(hold, "");
      const copying = Promise.all(
        Array.from({ length: restoresAtOnce }, () => run(engine, { snapshot })),
      );
      // What fails before they are waited for is told in its place.
      copying.catch(() => {});
      await until("all of them copy", () => copiesIn(data) === restoresAtOnce);
      const waiting = { id: newId(), snapshot };
      const refused = expect(run(engine, waiting)).rejects.toMatchObject({ code: "start_failed" });
      const other = await run(engine);
      expect((await other.sh("echo up")).stdout).toBe("up\n");
      await engine.container(waiting.id).destroy("remove");
      await refused;
      expect(copiesIn(data)).toBe(restoresAtOnce);
      rmSync(hold);
      for (const { sh } of await copying) {
        expect((await sh("cat /workspace/file")).stdout).toBe("saved\n");
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

function copiesIn(data: string): number {
  return readdirSync(`${data}/trash`).filter((name) => name.startsWith("copy.")).length;
}
