/** The command line of a chaos run, and the command that repeats it. */
import { parseArgs } from "node:util";
import { UserError } from "../../container/launch/program.js";

export const help = `Runs random clients against a real server while its parts are killed, stopped, disconnected and out of disk,
and compares the responses with the final state.

  npm run chaos -- [--minutes N] [--seed S] [--seeds N] [--each] [--json]

  --minutes N   duration of the faults, fractions allowed (default 2)
  --seed S      seed of all random choices (default 1)
  --seeds N     number of runs, with the seeds from S on (default 1)
  --each        continue until each kind of fault (except the longest stop) and of call has come, at most 4 minutes more
  --json        print the report of each run as one line of JSON on stdout

It exits with 1 after a broken promise, and prints the command that repeats the run; also if too little happened.
`;

export type Options = {
  minutes: number;
  seed: number;
  seeds: number;
  each: boolean;
  json: boolean;
  help: boolean;
};

export function parseOptions(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: "string", default: "2" },
      seed: { type: "string", default: "1" },
      seeds: { type: "string", default: "1" },
      each: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const minutes = Number(values.minutes);
  if (!(minutes >= 0.1 && minutes <= 1440)) {
    throw new UserError(`\`--minutes\` must be a number from 0.1 to 1440, not ${values.minutes}.`);
  }
  return {
    ...{ minutes, each: values.each, json: values.json, help: values.help },
    seed: readWholeNumber("--seed", values.seed),
    seeds: readWholeNumber("--seeds", values.seeds),
  };
}

export function repeatCommand(seed: number, minutes: number): string {
  return `npm run chaos -- --minutes ${minutes} --seed ${seed}`;
}

function readWholeNumber(flag: string, text: string): number {
  if (/^[1-9][0-9]{0,8}$/.test(text)) return Number(text);
  throw new UserError(`\`${flag}\` must be a whole number from 1, not ${text}.`);
}
