/** `npm run sim`: plays many seeds and reports a failure by its seed and the shortest history that still fails. */
import { parseArgs } from "node:util";
import { fleetBreakages } from "./fleet/fleet-breakages.ts";
import { playFleet } from "./fleet/history.ts";
import { scriptOf } from "./fleet/script.ts";
import { type Breakage, breakages } from "./sandbox/breakages.ts";
import { play, shrink } from "./sandbox/history.ts";
import { planOf } from "./sandbox/script.ts";
import type { History } from "./simulation.ts";
import { fleetMustReach, mustReach, platformMustReach, Tally } from "./tally.ts";

const help = `Plays histories by seed against the sandbox actor and holds them against its invariants.

  npm run sim -- [--fleet | --platform] [--seeds N] [--from S] [--break NAME] [--trace]

  --platform     containers of a platform that forgets, instead of one machine's engine
  --fleet        a Directory, plans and their sandboxes together, instead of one sandbox
  --seeds N      how many seeds; 1000 unless given
  --from S       the first seed; 1 unless given
  --break NAME   introduce a defect on purpose: ${breakages.join(", ")};
                 with --fleet: ${fleetBreakages.join(", ")}
  --trace        print the whole history of the first seed as well

It exits with 1 at the first failure, after its shortest history.
`;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seeds: { type: "string", default: "1000" },
      from: { type: "string", default: "1" },
      break: { type: "string" },
      trace: { type: "boolean", default: false },
      fleet: { type: "boolean", default: false },
      platform: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(help);
    return 0;
  }
  const from = wholeNumber("--from", values.from);
  const count = wholeNumber("--seeds", values.seeds);
  const seeds = Array.from({ length: count }, (_, index) => from + index);
  if (values.fleet) {
    const breakage = parseName(fleetBreakages, values.break);
    return explore(seeds, values.trace, {
      tally: new Tally(fleetMustReach),
      play: (seed) => playFleet(scriptOf(seed), breakage),
      describeFailure: async (_seed, { trace }) => trace.join("\n"),
    });
  }
  const breakage = parseName(breakages, values.break);
  return explore(seeds, values.trace, {
    tally: new Tally(values.platform ? platformMustReach : mustReach),
    play: (seed) => play(planOf(seed), breakage, { platform: values.platform }),
    describeFailure: (seed, { violation, trace }) =>
      values.platform
        ? Promise.resolve(trace.slice(-200).join("\n"))
        : shortest(seed, violation?.rule ?? "", breakage),
  });
}

type Exploration = {
  tally: Tally;
  play: (seed: number) => Promise<History>;
  describeFailure: (seed: number, history: History) => Promise<string>;
};

async function explore(
  seeds: number[],
  printsTrace: boolean,
  { tally, play, describeFailure }: Exploration,
): Promise<number> {
  for (const seed of seeds) {
    const history = await play(seed);
    const { violation, trace } = history;
    tally.add(history);
    if (printsTrace && seed === seeds[0]) process.stdout.write(`${trace.join("\n")}\n`);
    if (violation !== undefined) {
      process.stdout.write(`seed ${seed} breaks: ${violation.rule}\n${violation.message}\n`);
      process.stdout.write(`${await describeFailure(seed, history)}\n${tally.line}, 1 failed\n`);
      return 1;
    }
    if (tally.histories % 1000 === 0) process.stderr.write(`${tally.line}\n`);
  }
  process.stdout.write(`${tally.table}\n\n${tally.line}, 0 failed\n`);
  for (const name of tally.missed) process.stdout.write(`never reached: ${name}\n`);
  return 0;
}

async function shortest(seed: number, rule: string, breakage?: Breakage): Promise<string> {
  const { plan, history, plays } = await shrink(planOf(seed), rule, breakage);
  const steps = plan.steps.map((step) => `  ${JSON.stringify(step)}`).join("\n");
  return [
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
  if (found === undefined) throw new Error(`--break must be one of: ${names.join(", ")}`);
  return found;
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
