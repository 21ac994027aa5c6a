/**
 * `npm run sim`: plays many seeds and reports a failure by its seed and the shortest history that still fails.
 */
import { parseArgs } from "node:util";
import { type Breakage, breakages } from "./breakages.ts";
import { type FleetBreakage, fleetBreakages } from "./fleet/fleet-breakages.ts";
import { playFleet } from "./fleet/history.ts";
import { scriptOf } from "./fleet/script.ts";
import { play } from "./history.ts";
import { planOf } from "./script.ts";
import { shrink } from "./shrink.ts";
import { Tally } from "./tally.ts";

const help = `Plays histories by seed against the sandbox actor and holds them against its invariants.

  npm run sim -- [--fleet] [--seeds N] [--from S] [--break NAME] [--trace]

  --fleet        a Directory, plans and their sandboxes together, instead of candidate sandbox
  --seeds N      how many seeds; 1000 unless given
  --from S       the first candidate; 1 unless given
  --break NAME   break something on purpose: ${breakages.join(", ")};
                 with --fleet: ${fleetBreakages.join(", ")}
  --trace        tell the whole history of the first seed as well

A failure ends it with 1, after its shortest history.
`;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seeds: { type: "string", default: "1000" },
      from: { type: "string", default: "1" },
      break: { type: "string" },
      trace: { type: "boolean", default: false },
      fleet: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(help);
    return 0;
  }
  const from = wholeNumber("--from", values.from);
  const seeds = wholeNumber("--seeds", values.seeds);
  if (values.fleet) {
    return exploreFleet(from, seeds, parseName(fleetBreakages, values.break), values.trace);
  }
  return explore(from, seeds, parseName(breakages, values.break), values.trace);
}

async function explore(
  from: number,
  seeds: number,
  breakage: Breakage | undefined,
  printsTrace: boolean,
): Promise<number> {
  const tally = new Tally();
  for (let seed = from; seed < from + seeds; seed++) {
    const history = await play(planOf(seed), breakage);
    tally.add(history);
    if (printsTrace && seed === from) process.stdout.write(`${history.trace.join("\n")}\n`);
    if (history.violation !== undefined) {
      process.stdout.write(await failure(seed, history.violation.rule, breakage));
      process.stdout.write(`\n${tally.line()}, 1 failed\n`);
      return 1;
    }
    if (tally.histories % 1000 === 0) process.stderr.write(`${tally.line()}\n`);
  }
  process.stdout.write(`${tally.table()}\n\n${tally.line()}, 0 failed\n`);
  for (const name of tally.missed) process.stdout.write(`never reached: ${name}\n`);
  return 0;
}

async function exploreFleet(
  from: number,
  seeds: number,
  breakage: FleetBreakage | undefined,
  printsTrace: boolean,
): Promise<number> {
  let steps = 0;
  for (let seed = from; seed < from + seeds; seed++) {
    const { violation, trace, steps: taken } = await playFleet(scriptOf(seed), breakage);
    steps += taken;
    if (violation !== undefined || (printsTrace && seed === from)) {
      process.stdout.write(`${trace.join("\n")}\n`);
    }
    if (violation !== undefined) {
      process.stdout.write(`\nseed ${seed} breaks: ${violation.rule}: ${violation.message}\n`);
      return 1;
    }
  }
  process.stdout.write(`${seeds} histories of many, ${steps} steps, 0 failed\n`);
  return 0;
}

async function failure(seed: number, rule: string, breakage?: Breakage): Promise<string> {
  const { plan, history, plays } = await shrink(planOf(seed), rule, breakage);
  const steps = plan.steps.map((step) => `  ${JSON.stringify(step)}`).join("\n");
  return [
    `seed ${seed} breaks: ${rule}`,
    history.violation?.message ?? "",
    `\nthe shortest plan after ${plays} plays, ${plan.steps.length} steps:\n${steps}`,
    `\nwhat happens:\n${history.trace.join("\n")}\n`,
  ].join("\n");
}

function wholeNumber(flag: string, text: string): number {
  if (/^[1-9][0-9]{0,9}$/.test(text)) return Number(text);
  throw new Error(`${flag} must be a whole number from 1, not ${text}`);
}

function parseName<Name extends string>(names: readonly Name[], name?: string): Name | undefined {
  if (name === undefined) return undefined;
  const found = names.find((candidate) => candidate === name);
  if (found === undefined) throw new Error(`--break must be candidate of: ${names.join(", ")}`);
  return found;
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
