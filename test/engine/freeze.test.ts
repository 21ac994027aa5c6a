/** Incarnations that do not end and copies that take long: a blocked sandbox blocks no other. */
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { until } from "../until.ts";
import { EnginesOfTest, expectFilesKept, firstOf, identities, newId, run } from "./test-engine.ts";

/** The number of concurrent copies. */
const restoresAtOnce = 8;

describe.each(identities())("slow operations of an engine that is %s", (as) => {
  const engines = new EnginesOfTest(as);

  it("[R40] while an incarnation does not end, nothing else starts on its files, however often it is requested", async () => {
    const shortDestroy = new URL("short-destroy.ts", import.meta.url).pathname;
    const engine = await engines.start({ BUN_OPTIONS: `--preload=${shortDestroy}` });
    const sandbox = await run(engine);
    await sandbox.sh("echo kept > /workspace/file");
    const outer = firstOf(engine.processes());
    // A stopped `unshare` does not reap its agent: to the engine this incarnation never ends.
    process.kill(outer, "SIGSTOP");
    for (const _again of [1, 2, 3]) {
      await expect(run(engine, { id: sandbox.id })).rejects.toThrow();
      await expect(sandbox.container.destroy("remove")).rejects.toThrow();
    }
    expect(existsSync(`${engine.data}/trees/${sandbox.id}/workspace/file`)).toBe(true);
    process.kill(outer, "SIGCONT");
    await expectFilesKept(engine, sandbox.id);
  });

  it("[R41] starts that copy large trees delay no other start, and a queued start ends at once", async () => {
    const folder = mkdtempSync(join(tmpdir(), "berth-slow-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const hold = join(folder, "hold");
    const slow = `#!/bin/sh\nwhile [ -e ${hold} ]; do sleep 0.05; done\nexec /bin/cp "$@"\n`;
    writeFileSync(join(folder, "cp"), slow, { mode: 0o755 });
    chmodSync(folder, 0o755);
    const PATH = `${folder}:${process.env.PATH}`;
    const engine = await engines.start({ PATH });
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
    await until("all of them copy", () => copiesIn(engine.data) === restoresAtOnce);
    const waiting = { id: newId(), snapshot };
    const refused = expect(run(engine, waiting)).rejects.toMatchObject({ code: "start_failed" });
    const other = await run(engine);
    expect((await other.sh("echo up")).stdout).toBe("up\n");
    await engine.container(waiting.id).destroy("remove");
    await refused;
    expect(copiesIn(engine.data)).toBe(restoresAtOnce);
    rmSync(hold);
    for (const { sh } of await copying) {
      expect((await sh("cat /workspace/file")).stdout).toBe("saved\n");
    }
  });
});

function copiesIn(data: string): number {
  return readdirSync(`${data}/trash`).filter((name) => name.startsWith("copy.")).length;
}
