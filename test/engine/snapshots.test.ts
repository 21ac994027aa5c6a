/** Snapshots: complete, exact, taken while everything is frozen, restored in place of the old tree. */
import { existsSync, readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { until } from "../until.ts";
import { expectFilesKept, identities, newId, run, sharedEngine } from "./test-engine.ts";

describe.each(identities())("snapshots of an engine that is %s", (as) => {
  const engine = sharedEngine(as);

  const remove = (snapshotId: string) =>
    fetch(`${engine.baseUrl}/v1/snapshots/${snapshotId}`, {
      method: "DELETE",
      headers: { authorization: `Bearer ${engine.secret}` },
    });

  it("[R28] a restored tree is the saved one: contents, modes, times, links, attributes, deletions", async () => {
    const sandbox = await run(engine);
    const made = await sandbox.sh(
      [
        "set -e; cd /workspace; printf 'a\\000b' > bytes; ln bytes hard; ln -s nowhere soft",
        "mkdir -p empty closed; echo x > closed/in; chmod 000 closed; chmod 640 bytes",
        "touch -d '2001-02-03 04:05:06.123456789' bytes; truncate -s 3M sparse; mkfifo pipe",
        "echo mine > /home/berth/file; mkdir /home/berth/gone; rm -rf /home/berth/gone",
        "echo kept > /var/tmp/file; rm -f /etc/motd; rm -rf /etc/alternatives 2>/dev/null || true",
      ].join("; "),
    );
    expect(made).toMatchObject({ exitCode: 0 });
    const describeFiles =
      "cd /; chmod 700 /workspace/closed; find /workspace /home /var/tmp /etc -printf '%p %y %m %U %n %s %T@ %l\\n' | grep -v -e ^/workspace/closed' ' | sort | sha256sum; sha256sum /workspace/bytes; chmod 000 /workspace/closed";
    const before = (await sandbox.sh(describeFiles)).stdout;
    expect(before).toMatch(/^[0-9a-f]{64}/);
    const snapshotId = newId();
    expect((await sandbox.container.snapshot(snapshotId)).bytes).toBeGreaterThan(0);
    await sandbox.sh(
      "rm -rf /home/berth/file; echo changed > /workspace/bytes; echo more > /workspace/more",
    );
    expect((await sandbox.sh(describeFiles)).stdout).not.toBe(before);
    const restored = await run(engine, { id: sandbox.id, snapshot: snapshotId });
    expect(restored.started.files).toBe("snapshot");
    expect((await restored.sh(describeFiles)).stdout).toBe(before);
    // Another sandbox may start from it too, and neither affects the other.
    const fork = await run(engine, { snapshot: snapshotId });
    expect((await fork.sh(describeFiles)).stdout).toBe(before);
    await fork.sh("echo fork > /workspace/fork");
    expect((await restored.sh("ls /workspace/fork")).exitCode).not.toBe(0);
    expect((await remove(snapshotId)).status).toBe(204);
    expect(existsSync(`${engine.data}/snapshots/${snapshotId}`)).toBe(false);
    expect((await remove(snapshotId)).status).toBe(204);
    expect((await restored.sh(describeFiles)).stdout).toBe(before);
  });

  it("[R29] everything is frozen while a snapshot is taken, and continues afterwards", async () => {
    const sandbox = await run(engine);
    // Twenty files that a running program keeps equally long, except during a round.
    const files = "$(seq -f f%g 20)";
    const writer = `cd /workspace; while :; do for f in ${files}; do echo x >> $f; done; done`;
    const running = sandbox.sh(writer, 110_000).catch(() => "ended");
    const read = async () => Number((await sandbox.sh("wc -l < /workspace/f20")).stdout);
    await until("the writer", async () => (await read()) > 10);
    await sandbox.sh("head -c 60000000 /dev/urandom > /workspace/large");
    const snapshotId = newId();
    await sandbox.container.snapshot(snapshotId);
    const after = await read();
    await until("the writer continues", async () => (await read()) > after);
    const fork = await run(engine, { snapshot: snapshotId });
    const { stdout } = await fork.sh(`cd /workspace; for f in ${files}; do wc -l < $f; done`);
    const counts = stdout.trim().split("\n").map(Number);
    expect(counts.length).toBe(20);
    expect(Math.min(...counts)).toBeGreaterThan(10);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
    await sandbox.container.destroy("remove");
    await running;
  });

  it("[R30] a failed restore leaves the sandbox and its files, and no partial copy", async () => {
    const sandbox = await run(engine);
    await sandbox.sh("echo kept > /workspace/file");
    const call = { snapshot: newId() };
    await expect(run(engine, { id: sandbox.id, ...call })).rejects.toMatchObject({
      code: "start_failed",
    });
    await expectFilesKept(engine, sandbox.id);
    expect(readdirSync(`${engine.data}/snapshots`).includes(call.snapshot)).toBe(false);
    await until(
      "the trash is empty",
      () => readdirSync(`${engine.data}/trash`).length === 0,
      90_000,
    );
  });
});
