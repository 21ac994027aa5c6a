import { expect, it } from "vitest";
import { newFolder } from "../../new-folder.ts";
import { until } from "../../until.ts";
import { processesNaming } from "../processes.ts";
import { startServer } from "../server.ts";

it("[O16] npm run dev runs a command with the key of npm start, restarts wrangler and leaves nothing behind", {
  timeout: 300_000,
}, async () => {
  const data = newFolder("dev");
  const server = await startServer({ data, script: "dev", readyWithinMs: 180_000 });
  const id = await server.create();
  expect((await server.exec(id, "echo from dev")).body).toMatchObject({ stdout: "from dev\n" });
  const commands = server.processes().map(({ command }) => command);
  expect(commands.join("\n")).toContain("wrangler");
  expect(commands.join("\n")).not.toContain(server.key);

  const recorded = () => server.processRecord("dev").find(({ name }) => name === "wrangler");
  const { pid } = recorded() ?? {};
  process.kill(pid ?? 0, "SIGKILL");
  await until("wrangler is another one", () => ![pid, undefined].includes(recorded()?.pid));
  expect((await server.exec(id, "echo again")).body).toMatchObject({ stdout: "again\n" });
  expect(server.launched.output.stderr).toContain(
    "berth: wrangler ended (SIGKILL). Restarting it.",
  );
  expect(await server.stop()).toMatchObject({ code: 0 });
  await until("nothing is left", () => processesNaming(data).length === 0);
});
