/** `npm run screenshots`: makes the pictures of the docs from a server that runs for it. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { paths } from "../container/launch/paths.js";
import { Browser } from "./system/browser/browser.ts";
import { DashboardUser } from "./system/browser/dashboard-user.ts";
import { type Server, startServer } from "./system/server.ts";
import { until } from "./until.ts";

const folder = join(paths.root, "docs/images");

mkdirSync(folder, { recursive: true });
await using server = await startServer();
await using browser = await Browser.start();
const id = await prepare(server);
const user = new DashboardUser(browser.page, server);
await user.page.setViewportSize({ width: 1200, height: 640 });
await user.signIn();
await user.page.getByText("acme/shop · main").waitFor();
await user.page.getByText("alice: npm test").waitFor();
await take("sandboxes");
await user.open(`sandboxes/${id}/lease`);
await user.page.getByText("ci 4711").waitFor();
await take("lease");
await user.open(`sandboxes/${id}/processes`);
await user.button("Log").click();
await until("the log is shown", async () => (await user.screen()).includes("ready on 8000"));
await take("processes");
await until("there is a line to draw", async () => {
  const { body } = await server.call("GET", `/v1/sandboxes/${id}/metrics`);
  return (body.metrics as object[]).length > 4;
});
await user.open(`sandboxes/${id}/metrics`);
await user.page.locator(".u-wrap").first().waitFor();
await take("metrics");
await user.open(`sandboxes/${id}/checkpoints`);
await user.page.getByRole("list", { name: "Forks" }).first().waitFor();
await take("checkpoints");
await user.open(`sandboxes/${id}/settings`);
await user.page.getByLabel("When it is idle").waitFor();
await take("settings");
await server.stop();

async function take(name: string): Promise<void> {
  await user.page.screenshot({ path: join(folder, `${name}.png`) });
  process.stdout.write(`docs/images/${name}.png\n`);
}

/** Sandboxes of a repository, one of them with a lease, a queue and a process. Returns its id. */
async function prepare(server: Server): Promise<string> {
  const repo = "github.com/acme/shop";
  await server.call("POST", "/v1/sandboxes", { start: false });
  const branches = ["fix/race", "feature/login", "main"];
  const ids = [];
  for (const branch of branches) ids.push(await server.create({ scope: { repo, branch } }));
  const id = ids.at(-1) ?? "";
  await server.call("POST", `/v1/sandboxes/${id}/processes`, {
    command: "npm() { echo '> shop dev'; echo 'ready on 8000'; }; npm run dev; sleep 600",
  });
  const checkpoints = `/v1/sandboxes/${id}/checkpoints`;
  const { body: saved } = await server.call("POST", checkpoints, { name: "before the upgrade" });
  for (const branch of ["try/a", "try/b"]) {
    await server.call("POST", "/v1/sandboxes", { from: saved.id, scope: { repo, branch } });
  }
  await server.call("POST", checkpoints, { name: "upgraded" });
  const lease = `/v1/sandboxes/${id}/lease`;
  await server.call("POST", lease, { holder: "alice: npm test", ttlMs: 300_000 });
  for (const holder of ["bob: make", "ci 4711"]) {
    await server.call("POST", lease, { holder, queueMs: 300_000 });
  }
  return id;
}
