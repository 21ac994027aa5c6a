/**
 * Owns `npm run chaos`: one run for each seed, a report of each, and the exit code.
 * Does not own what a run is (play.ts).
 */
import { run } from "../../container/launch/say.js";
import { help, parseOptions } from "./options.ts";
import { play } from "./play.ts";
import { minuteLine, reportOf, summaryOf } from "./report.ts";

await run(async () => {
  const options = parseOptions(process.argv.slice(2));
  if (options.help) {
    process.stdout.write(help);
    return 0;
  }
  const stopped = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    // Its server is ended in order, and what was found so far is told.
    process.on(signal, () => stopped.abort());
  }
  const { seed: first, seeds, minutes, each } = options;
  let broken = 0;
  for (let seed = first; seed < first + seeds && !stopped.signal.aborted; seed += 1) {
    const tell = (line: string) => process.stderr.write(line);
    const length = { minutes, each };
    const played = await play(seed, length, (so) => tell(minuteLine(so)), stopped.signal);
    const report = reportOf(seed, minutes, played);
    broken += report.broken;
    if (options.json) process.stdout.write(`${JSON.stringify(report)}\n`);
    else process.stdout.write(summaryOf(report));
  }
  return broken > 0 || stopped.signal.aborted ? 1 : 0;
});
process.exit();
