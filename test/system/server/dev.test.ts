import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { until } from "../../until.ts";
import { processesNaming } from "../processes.ts";
import { startServer } from "../server.ts";

it("[O16] npm run dev runs a command with the key of npm start, and leaves nothing behind", {
  timeout: 300_000,
}, async () => {
  const data = mkdtempSync(join(tmpdir(), "berth-dev-"));
  try {
    const server = await startServer({ data, script: "dev", readyWithinMs: 180_000 });
    const id = await server.create();
    expect((await server.exec(id, "echo from dev")).body).toMatchObject({ stdout: "from dev\n" });
    const secrets = [server.key];
    const commands = server.processes().map(({ command }) => command);
    expect(commands.join("\n")).toContain("wrangler");
    for (const secret of secrets) expect(commands.join("\n")).not.toContain(secret);
    expect(await server.stop()).toMatchObject({ code: 0 });
    await until("nothing is left", () => processesNaming(data).length === 0);
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
});
