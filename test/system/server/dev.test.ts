import { expect, it } from "vitest";
import { newFolder } from "../../new-folder.ts";
import { until } from "../../until.ts";
import { processesNaming } from "../processes.ts";
import { startServer } from "../server.ts";

it("[O16] npm run dev runs a command with the key of npm start, and leaves nothing behind", {
  timeout: 300_000,
}, async () => {
  const data = newFolder("dev");
  const server = await startServer({ data, script: "dev", readyWithinMs: 180_000 });
  const id = await server.create();
  expect((await server.exec(id, "echo from dev")).body).toMatchObject({ stdout: "from dev\n" });
  const commands = server.processes().map(({ command }) => command);
  expect(commands.join("\n")).toContain("wrangler");
  expect(commands.join("\n")).not.toContain(server.key);
  expect(await server.stop()).toMatchObject({ code: 0 });
  await until("nothing is left", () => processesNaming(data).length === 0);
});
