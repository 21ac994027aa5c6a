/**
 * Owns what a run of the chaos is told on its command line, and the line that repeats it.
 */
import { parseArgs } from "node:util";

export const help = `Plays random clients against a real server while its parts are killed, stopped, cut off and out of disk,
and holds what was answered against what is there in the end.

  npm run chaos -- [--minutes N] [--seed S] [--seeds N] [--each] [--json]

  --minutes N   how long the faults last; 2 unless given, parts allowed
  --seed S      what is chosen by chance; 1 unless given
  --seeds N     that many runs, of the seeds from S on; 1 unless given
  --each        goes on until each kind of fault (but the longest stop) and of call has come, 4 minutes more at most
  --json        the report as one line of JSON for each run, on stdout

A promise that was broken ends it with 1, after the line that repeats it; so does a run in which too little happened.
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
    throw new Error(`--minutes must be a number from 0.1 to 1440, not ${values.minutes}`);
  }
  return {
    ...{ minutes, each: values.each, json: values.json, help: values.help },
    seed: wholeNumber("--seed", values.seed),
    seeds: wholeNumber("--seeds", values.seeds),
  };
}

export function repeatLine(seed: number, minutes: number): string {
  return `npm run chaos -- --minutes ${minutes} --seed ${seed}`;
}

function wholeNumber(flag: string, text: string): number {
  if (/^[1-9][0-9]{0,8}$/.test(text)) return Number(text);
  throw new Error(`${flag} must be a whole number from 1, not ${text}`);
}
