/** `npm run chaos`: one run per seed, a report of each, and the exit code. See chaos-run.ts for a run. */
import { runProgram } from "../../container/launch/program.js";
import { runChaos } from "./chaos-run.ts";
import { help, parseOptions } from "./options.ts";
import { minuteLine, reportOf, summaryOf } from "./report.ts";

await runProgram(async () => {
  const options = parseOptions(process.argv.slice(2));
  if (options.help) {
    process.stdout.write(help);
    return 0;
  }
  const stopped = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    // The server is ended in order, and the findings so far are printed.
    process.on(signal, () => stopped.abort());
  }
  const { seed: first, seeds, minutes, each } = options;
  let broken = 0;
  for (let seed = first; seed < first + seeds && !stopped.signal.aborted; seed += 1) {
    const printProgress = (line: string) => process.stderr.write(line);
    const length = { minutes, each };
    const run = await runChaos(
      seed,
      length,
      (history) => printProgress(minuteLine(history)),
      stopped.signal,
    );
    const report = reportOf(seed, minutes, run);
    broken += report.broken;
    if (options.json) process.stdout.write(`${JSON.stringify(report)}\n`);
    else process.stdout.write(summaryOf(report));
  }
  return broken > 0 || stopped.signal.aborted ? 1 : 0;
});
process.exit();
