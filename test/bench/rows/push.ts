/** Measures a new large file on its way into a sandbox, against git's own way to a server on this machine. */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { appendFileSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { syncUp } from "../../../src/cli/sync/sync.ts";
import { connect } from "../../../src/client/index.ts";
import { until } from "../../until.ts";
import { Berth } from "../berth.ts";
import { commitAll, createCheckout, runGit, userEnvironment } from "../checkout.ts";
import { type Bench, comparison, type Figure } from "../figure.ts";
import { inTurns, timed } from "../measure.ts";
import { freePort } from "../peers/program.ts";

const megabytes = 300;
const files = 20;

export async function push(bench: Bench): Promise<Figure[]> {
  const berth = await Berth.start(bench);
  const sandbox = connect({ url: berth.http.url, key: berth.key }).sandbox(await berth.create());
  const [ours, theirs] = [bench.folder(), bench.folder()];
  const [own, other] = [createCheckout(ours, files), createCheckout(theirs, files)];
  await syncUp(sandbox, own);
  await serveGit(bench, theirs, other);
  const times = await inTurns(
    bench,
    "round",
    { turns: bench.isShort ? 1 : 3 },
    {
      berth: async () => {
        writeLargeFile(own);
        return await timed(() => syncUp(sandbox, own));
      },
      git: async () => {
        writeLargeFile(other);
        return await timed(async () => {
          commitAll(theirs, other);
          runGit(theirs, other, "push", "-q", "origin", "HEAD");
        });
      },
    },
  );
  const format = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
  const row = `a new file of ${megabytes} MB into the sandbox, against commit and push by git`;
  return [comparison(row, { berth: times.berth, git: times.git }, { format })];
}

/** Random bytes, which nothing can compress. */
function writeLargeFile(folder: string): void {
  const path = join(folder, "large");
  rmSync(path, { force: true });
  for (let part = 0; part < megabytes; part += 1) appendFileSync(path, randomBytes(1_000_000));
}

async function serveGit(bench: Bench, home: string, checkout: string): Promise<void> {
  const base = join(home, "served");
  mkdirSync(base);
  runGit(home, base, "init", "-q", "--bare", "repo.git");
  const port = await freePort();
  const server = spawn(
    "git",
    [
      "daemon",
      "--enable=receive-pack",
      "--export-all",
      "--listen=127.0.0.1",
      `--port=${port}`,
      `--base-path=${base}`,
    ],
    { env: userEnvironment(home), stdio: "ignore", detached: true },
  );
  bench.closes(() => process.kill(-(server.pid ?? 0), "SIGKILL"));
  runGit(home, checkout, "remote", "add", "origin", `git://127.0.0.1:${port}/repo.git`);
  await until("git serves", () => {
    try {
      runGit(home, checkout, "ls-remote", "origin");
      return true;
    } catch {
      return false;
    }
  });
}
