import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { until } from "../../until.ts";
import { alive, processesNaming } from "../processes.ts";
import { copyOfSources } from "../server/checkout.ts";
import { startServer } from "../server.ts";

const limitMs = 280_000;

it(
  "[O15] a copy of the sources, with nothing installed, answers a command after npm start",
  async () => {
    const folder = copyOfSources();
    try {
      const home = join(folder, "home");
      mkdirSync(home);
      // Where packages come from is the machine's to say, and is all that is taken from its home.
      const userconfig = execFileSync("npm", ["config", "get", "userconfig"], { encoding: "utf8" });
      const server = await startServer({
        cwd: folder,
        data: join(folder, ".berth"),
        env: {
          HOME: home,
          npm_config_cache: join(home, "npm"),
          NPM_CONFIG_USERCONFIG: userconfig.trim(),
        },
        readyWithinMs: limitMs,
      });
      expect(server.launched.output.stderr).toMatch(/^berth: Installed packages in \d+ s\.$/m);
      const id = await server.create();
      expect((await server.exec(id, "echo first")).body).toMatchObject({ stdout: "first\n" });
      const tree = server.processes();
      expect(tree.length).toBeGreaterThan(3);
      expect(await server.stop()).toMatchObject({ code: 0 });
      await until("its processes are gone", () => alive(tree).length === 0);
      expect(processesNaming(folder)).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
  limitMs + 60_000,
);
