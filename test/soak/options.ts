/**
 * Owns what a soak is told on its command line.
 */
import { parseArgs } from "node:util";

export const help = `Keeps a real server under a moderate, steady load and watches its memory, descriptors and latency.

  npm run soak -- [--minutes N] [--json]

  --minutes N   how long; 30 unless given, parts allowed. Under 30 nothing is judged
  --json        all of it as one line of JSON on stdout, in place of the table

The first tenth goes as fast as it is answered, to warm up. Memory that grows by more than 5 % after it, a p99 that rises, a
call that fails, a minute without a command, and whoever stops it before its time end it with 1.
`;

export type Options = { minutes: number; json: boolean; help: boolean };

export function parseOptions(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: "string", default: "30" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const minutes = Number(values.minutes);
  if (!(minutes >= 0.2 && minutes <= 10_080)) {
    throw new Error(`--minutes must be a number from 0.2 to 10080, not ${values.minutes}`);
  }
  return { minutes, json: values.json, help: values.help };
}
