/** Incarnations that do not end and copies that take long: a blocked sandbox blocks no other. */
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

/** The number of concurrent copies. */
const restoresAtOnce = 8;

describe.each(identities())("slow operations of an engine that is %s", (as) => {
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

  it("[R40] while an incarnation does not end, nothing else starts on its files, however often it is requested", async () => {
    const shortDestroy = new URL("short-destroy.ts", import.meta.url).pathname;
    engine = await startEngine(as, { data, env: { BUN_OPTIONS: `--preload=${shortDestroy}` } });
    const sandbox = await run(engine);
    await sandbox.sh("echo kept > /workspace/file");
    const [outer = 0] = engine.processes();
    // A stopped `unshare` does not reap its agent: to the engine this incarnation never ends.
    process.kill(outer, "SIGSTOP");
    for (const _again of [1, 2, 3]) {
      await expect(run(engine, { id: sandbox.id })).rejects.toThrow();
      await expect(sandbox.container.destroy("remove")).rejects.toThrow();
    }
    expect(existsSync(`${data}/trees/${sandbox.id}/workspace/file`)).toBe(true);
    process.kill(outer, "SIGCONT");
    const restarted = await run(engine, { id: sandbox.id });
    expect(restarted.started.files).toBe("kept");
    expect((await restarted.sh("cat /workspace/file")).stdout).toBe("kept\n");
  });

  it("[R41] starts that copy large trees delay no other start, and a queued start ends at once", async () => {
    const folder = mkdtempSync(join(tmpdir(), "berth-slow-"));
    const hold = join(folder, "hold");
    const slow = `#!/bin/sh\nwhile [ -e ${hold} ]; do sleep 0.05; done\nexec /bin/cp "$@"\n`;
    writeFileSync(join(folder, "cp"), slow, { mode: 0o755 });
    chmodSync(folder, 0o755);
    try {
      const PATH = `${folder}:${process.env.PATH}`;
      engine = await startEngine(as, { data, env: { PATH } });
      const sandbox = await run(engine);
      await sandbox.sh("echo saved > /workspace/file");
      const snapshot = newId();
      await sandbox.container.snapshot(snapshot);
      writeFileSync(hold, "");
      const copying = Promise.all(
        Array.from({ length: restoresAtOnce }, () => run(engine, { snapshot })),
      );
      // A failure before the await is reported at the await.
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
