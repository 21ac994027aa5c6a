import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { root, tools } from "../../../container/launch/paths.js";
import { readWranglerToml } from "../../../container/launch/worker-config.js";
import { newFolder } from "../../new-folder.ts";
import { cleanEnvironment } from "../server.ts";

const run = promisify(execFile);

it("[O17] wrangler deploy accepts the configuration and bundles every class that it names", async () => {
  const out = newFolder("deploy");
  const args = ["deploy", "--dry-run", "--containers-rollout=none", "--outdir", out];
  const { stdout, stderr } = await run(tools.node, [tools.wrangler, ...args], {
    cwd: root,
    env: cleanEnvironment({ WRANGLER_SEND_METRICS: "false", WRANGLER_LOG_PATH: out }),
  });
  expect(stdout).toContain("--dry-run: exiting now.");
  expect(stdout + stderr).not.toMatch(/warning/i);
  const bundle = readFileSync(join(out, "index.js"), "utf8");
  const exported = /export \{([^}]*)\};?\s*(\/\/#.*)?\s*$/.exec(bundle)?.[1] ?? "";
  const names = [
    ...readWranglerToml().objects.map(({ className }) => className),
    "BerthApi",
    "AgentCallback",
    "ContainerProxy",
  ];
  for (const name of names) expect(exported).toMatch(new RegExp(`\\b${name}\\b`));
  expect(stdout).toContain("- SandboxObject (durable_object)");
});
