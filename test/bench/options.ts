/** The command line of the bench: rows, flags and help. */
import { parseArgs } from "node:util";
import { UserError } from "../../container/launch/program.js";
import { onlyIfNamed, type RowName, rowNames } from "./rows.ts";

export type Options = {
  rows: RowName[];
  /** Fewer rounds; absolute times are not judged. */
  isShort: boolean;
  /** Exit with 1 if a target is missed. */
  judges: boolean;
  /** Print the complete report on stdout instead of the table. */
  isJson: boolean;
  help: boolean;
};

export const help = `Measures Berth on this machine and compares the figures with their targets.

  npm run bench -- [ROW…] [--short] [--judge] [--json]

  exec       a command through Berth, against the agent called directly
  create     from create to the response of the first command
  density    500 running sandboxes: memory, idle load, response times, shutdown
  streams    1,000 commands in 16 parallel streams on one sandbox
  burst      50 sandboxes created at once
  invented   3,000 invented ids leave nothing behind
  lease      acquiring, handing over and releasing the lease
  metadata   changes and reads, what they write to disk, and what an idle sandbox costs
  directory  lists, finds and creates among 100,000 sandboxes and among 100
  directory-load  calls per second of one Directory with 1, 16 and 64 clients
  output     a process's output to a follower, and what it leaves in memory
  sessions   a command in a session, against exec
  terminals  the echo of a keystroke against a bare PTY, and 100 MB of output
  checkpoint 200 MB in 20,000 files saved, restored, paused, started
  plan       eight sandboxes committed together against the bare copies, and rolled back
  port       a server in a sandbox through its port address, against the same server called directly
  files      a file of 200 MB up and down, and a list of 5,000
  sync       a checkout that has not changed, and a whole \`berth exec -- true\` on it
  command    \`berth exec -- true\`, \`berth exec --id\` and \`berth list\`, against \`node -e 0\`
  push       a new file of 300 MB: \`berth push\`, against \`git push\` over loopback
  growth     the same work with more running sandboxes, longer lists and queues, more viewers
  cost       what the platform bills for each operation, and for a month of 1,000 sandboxes

  peers      only if named: the locks of etcd and Redis; commands, transfers and terminal of sshd

  --short   fewer rounds; absolute times are printed but not judged
  --judge   exit with 1 if a target is missed
  --json    print machine, versions, commit and every figure on stdout, the table on stderr
  --help    print this help

Without a row it measures all rows except \`peers\`. The table is printed on stdout, progress on stderr if that is a terminal,
and every figure is written to bench-results/<time>.json. It exits with 1 if a row cannot be measured.

Examples
  npm run bench
  npm run bench -- exec create
  npm run bench -- --short --judge
  npm run --silent bench -- exec --json | jq .figures
`;

export function parseOptions(args: string[]): Options {
  const { tokens } = parseArgs({
    args,
    strict: false,
    tokens: true,
    options: {
      short: { type: "boolean" },
      judge: { type: "boolean" },
      json: { type: "boolean" },
      help: { type: "boolean", short: "h" },
    },
  });
  const rows: RowName[] = [];
  const flags = new Set<string>();
  for (const token of tokens) {
    if (token.kind === "positional") rows.push(rowOf(token.value));
    if (token.kind !== "option") continue;
    if (!["short", "judge", "json", "help"].includes(token.name) || token.value !== undefined) {
      throw new UserError(`Unknown flag \`${token.rawName}\`. See \`npm run bench -- --help\`.`);
    }
    flags.add(token.name);
  }
  return {
    rows: rowNames.filter((name) =>
      rows.length === 0 ? !onlyIfNamed.includes(name) : rows.includes(name),
    ),
    isShort: flags.has("short"),
    judges: flags.has("judge"),
    isJson: flags.has("json"),
    help: flags.has("help"),
  };
}

function rowOf(text: string): RowName {
  const found = rowNames.find((name) => name === text);
  if (found === undefined) {
    throw new UserError(`There is no row ${text}. The rows are ${rowNames.join(", ")}.`);
  }
  return found;
}
