/** Measures the sync of an unchanged checkout, and a complete `berth exec -- true` with it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { root, tools } from "../../../container/launch/paths.js";
import { syncUp } from "../../../src/cli/sync/sync.ts";
import { connect } from "../../../src/client/index.ts";
import { Berth } from "../berth.ts";
import { createCheckout, userEnvironment } from "../checkout.ts";
import { type Bench, type Figure, inMs, median, round, spread, targetOf } from "../figure.ts";
import { inTurns, timed } from "../measure.ts";

const files = 1000;
const targetMs = 300;
const call = JSON.stringify({ argv: ["true"] });

export async function sync(bench: Bench): Promise<Figure[]> {
  const berth = await Berth.start(bench);
  const home = bench.folder();
  const checkout = createCheckout(home, files);
  const { key } = berth;
  const { url } = berth.http;
  const env = { ...userEnvironment(home), BERTH_URL: url, BERTH_KEY: key };
  const command = () => berthExec(checkout, env);
  const { sandbox: id, sync: first } = await command();
  if (first.sentBytes === 0) throw new Error("the checkout was not sent");
  const sandbox = connect({ url, key }).sandbox(id);
  const rounds = bench.isShort ? 5 : 30;
  const times = await inTurns(
    bench,
    "round",
    { turns: rounds, warmUps: 1 },
    {
      trip: () => timed(() => berth.exec(id, call)),
      sync: () => timed(async () => requireNothingSent(await syncUp(sandbox, checkout))),
      command: () => timed(async () => requireNothingSent((await command()).sync)),
    },
  );
  const [trip, own, total] = [median(times.trip), median(times.sync), median(times.command)];
  const raw = { rounds, files, sentBytes: 0 };
  const against = `${round(trip, 1)} ms for a bare exec`;
  return [
    {
      row: `sync of ${files} files, nothing changed: median`,
      measured: `${inMs(0)(own)}, nothing sent; ${against}`,
      ...targetOf(bench, own, targetMs, "ms"),
      ratio: round(own / trip, 1),
      raw: { ...raw, ms: spread(times.sync), tripMs: spread(times.trip) },
    },
    {
      row: "`berth exec -- true`, nothing changed: median, from start to end of the command",
      measured: `${inMs(0)(total)}, nothing sent; ${against}`,
      ratio: round(total / trip, 1),
      raw: { ...raw, ms: spread(times.command) },
    },
  ];
}

function requireNothingSent({ sentBytes }: { sentBytes: number }): void {
  if (sentBytes !== 0) throw new Error(`${sentBytes} bytes were sent although nothing had changed`);
}

type ExecReport = { sandbox: string; sync: { sentBytes: number } };

async function berthExec(cwd: string, env: NodeJS.ProcessEnv): Promise<ExecReport> {
  const args = [join(root, "src/cli/main.ts"), "exec", "--json", "--", "true"];
  const child = spawn(tools.node, args, { cwd, env, stdio: ["ignore", "pipe", "inherit"] });
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (more: string) => {
    stdout += more;
  });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`berth exec ended with ${code}: ${stdout}`);
  return JSON.parse(stdout) as ExecReport;
}
