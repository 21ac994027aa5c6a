/**
 * Owns what a person may say to the bench: rows, flags, help.
 * Does not own the rows themselves.
 */
import { parseArgs } from "node:util";
import { Refusal } from "../../container/launch/say.js";
import { byHand, type RowName, rowNames } from "./rows.ts";

export type Options = {
  rows: RowName[];
  /** Fewer rounds, and no verdict on absolute time. */
  isShort: boolean;
  /** A missed target ends the program with 1. */
  judges: boolean;
  /** The whole report on stdout, in place of the table. */
  isJson: boolean;
  help: boolean;
};

export const help = `Measures Berth on this machine and holds the figures against their targets.

  npm run bench -- [ROW…] [--short] [--judge] [--json]

  exec       a command through Berth, against the agent asked directly
  create     from create to the first command answered
  density    500 sandboxes at once: memory, idle time, answers, shutdown
  streams    1,000 commands in 16 parallel streams on one sandbox
  burst      50 sandboxes created at once
  invented   3,000 invented ids leave nothing behind
  lease      getting, handing over and letting go of the lease
  metadata   changes, looks, what they write to disk, and what an idle sandbox costs
  directory  lists, finds and creates among 100,000 sandboxes and among 100
  directory-load  calls a second that one Directory answers to 1, 16 and 64 clients
  output     a process's output to a follower, and what it leaves in memory
  sessions   a command in a session, against exec
  terminals  the echo of a keystroke against a bare PTY, and 100 MB of output
  checkpoint 200 MB in 20,000 files saved, restored, paused, started
  plan       eight sandboxes committed together against the bare copies, and rolled back
  port       a server in a sandbox by its address, against the server asked directly
  files      a file of 200 MB up and down, and a list of 5,000
  sync       a checkout that has not changed, and a whole \`berth exec -- true\` on it
  growth     the same work with more live sandboxes, longer lists and queues, more viewers
  cost       what each operation makes the platform bill, and what a month of 1,000 sandboxes costs

  beside     by hand only: the locks of etcd and Redis, commands, bytes and terminal of sshd

  --short   fewer rounds; absolute times are printed and not judged
  --judge   end with 1 where a target is missed
  --json    machine, versions, commit and every figure to stdout; the table goes to stderr
  --help    this

Without a row: all but those by hand. The table goes to stdout, progress to stderr where that is a terminal, every figure to
bench-results/<time>.json. Ends with 1 where something could not be measured.

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
      throw new Refusal(`unknown flag ${token.rawName}; see npm run bench -- --help`);
    }
    flags.add(token.name);
  }
  return {
    rows: rowNames.filter((name) =>
      rows.length === 0 ? !byHand.includes(name) : rows.includes(name),
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
    throw new Refusal(`there is no row ${text}; the rows are ${rowNames.join(", ")}`);
  }
  return found;
}
