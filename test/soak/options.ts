/** The command line of a soak. */
import { parseArgs } from "node:util";
import { UserError } from "../../container/launch/program.js";

export const help = `Keeps a real server under a moderate, steady load and watches its memory, descriptors and latency.

  npm run soak -- [--minutes N] [--json]

  --minutes N   duration, fractions allowed (default 30); under 30 nothing is judged
  --json        print all results as one line of JSON on stdout instead of the table

The first tenth is a warm-up without pauses. It exits with 1 if memory then grows by more than 5 %, a p99 rises, a call
fails, a minute has no command, or the run is stopped early.
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
    throw new UserError(`\`--minutes\` must be a number from 0.2 to 10080, not ${values.minutes}.`);
  }
  return { minutes, json: values.json, help: values.help };
}
