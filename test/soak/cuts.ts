/**
 * `npm run soak -- cuts`: runs `berth exec` over a proxy that cuts each run once, at a random moment and for a random
 * time, and checks exit code and output. A run must outlive a cut of up to two seconds; after a longer one it may fail
 * instead, but never with a wrong exit code or with other output.
 */
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { UserError } from "../../container/launch/program.js";
import { Random } from "../sim/random.ts";
import { CliUser } from "../system/cli/cli-user.ts";
import { CutProxy } from "../system/client/cut-proxy.ts";
import { startServer } from "../system/server.ts";

const cutMinMs = 100;
const cutMaxMs = 5_000;
/** What a run must outlive. */
const outlivedMs = 2_000;
const tickMs = 100;
const kinds = ["FIN", "RST", "silence"] as const;
/** Starting the command and fetching its changes take about this long besides. */
const aroundMs = 1_000;

type Cut = { kind: (typeof kinds)[number]; atMs: number; ms: number };

export const cutsHelp = `  npm run soak -- cuts [--count N] [--seconds S] [--lanes L] [--seed S]

  --count N     number of runs, each with one cut (default 100)
  --seconds S   how long the command of each run takes (default 10)
  --lanes L     how many run at once (default 8)
`;

export async function soakCuts(args: string[]): Promise<number> {
  const { count, seconds, lanes, seed } = parseCutsOptions(args);
  const random = new Random(seed);
  const cuts = Array.from(
    { length: count },
    (): Cut => ({
      kind: random.pick(kinds),
      atMs: random.between(0, seconds * 1_000 + aroundMs),
      ms: random.between(cutMinMs, cutMaxMs),
    }),
  );
  await using server = await startServer();
  using user = new CliUser(server);
  const failures: string[] = [];
  const counts = { outlived: 0, "longer, but outlived": 0, "longer, refused": 0, wrong: 0 };
  const lane = async (n: number) => {
    await using proxy = await CutProxy.to(server.url);
    const cwd = user.repo(`lane-${n}`);
    for (let cut = cuts.pop(); cut !== undefined; cut = cuts.pop()) {
      const outcome = await runWithCut(user, cwd, proxy, cut, seconds);
      counts[outcome.as] += 1;
      if (outcome.as !== "wrong") continue;
      failures.push(`${JSON.stringify(cut)}: ${outcome.why}`);
      process.stderr.write(`${failures.at(-1)}\n`);
    }
  };
  await Promise.all(Array.from({ length: lanes }, (_, n) => lane(n)));
  process.stdout.write(`${count} runs of ${seconds} s, seed ${seed}: ${JSON.stringify(counts)}\n`);
  return failures.length === 0 ? 0 : 1;
}

type Outcome = {
  as: "outlived" | "longer, but outlived" | "longer, refused" | "wrong";
  why?: string;
};

async function runWithCut(
  user: CliUser,
  cwd: string,
  proxy: CutProxy,
  { kind, atMs, ms }: Cut,
  seconds: number,
): Promise<Outcome> {
  const count = Math.round((seconds * 1_000) / tickMs);
  const script = `for n in $(seq ${count}); do echo line $n; sleep ${tickMs / 1_000}; done; echo made > made-$$; exit 7`;
  const expected = Array.from({ length: count }, (_, n) => `line ${n + 1}\n`).join("");
  const run = user.start(["exec", "--", "sh", "-c", script], {
    cwd,
    env: { BERTH_URL: proxy.url },
  });
  await Promise.race([pause(atMs), run.ended]);
  if (kind === "silence") proxy.silence(pause(ms));
  else {
    proxy.refuse(true);
    proxy.cut(kind);
    await pause(ms);
    proxy.refuse(false);
  }
  const { code, stdout, stderr } = await run.ended;
  if (code === 7 && stdout === expected) {
    return { as: ms <= outlivedMs ? "outlived" : "longer, but outlived" };
  }
  // After a longer cut the run may fail as such, having printed a part of the output and nothing else.
  const isRefusal = code !== 7 && /^error: /m.test(stderr) && expected.startsWith(stdout);
  if (ms > outlivedMs && isRefusal) return { as: "longer, refused" };
  const printed = stdout.length > 200 ? `…${stdout.slice(-200)}` : stdout;
  return { as: "wrong", why: JSON.stringify({ code, printed, stderr }) };
}

function parseCutsOptions(args: string[]) {
  const text = (initial: string) => ({ type: "string", default: initial }) as const;
  const { values } = parseArgs({
    args,
    options: { count: text("100"), seconds: text("10"), lanes: text("8"), seed: text("1") },
  });
  const entries = Object.entries(values).map(([name, value]) => {
    if (!/^[1-9][0-9]{0,5}$/.test(value)) {
      throw new UserError(`\`--${name}\` must be a whole number from 1, not ${value}.`);
    }
    return [name, Number(value)];
  });
  return Object.fromEntries(entries) as Record<keyof typeof values, number>;
}
