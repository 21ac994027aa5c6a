/**
 * Owns what to do at a shell about a failure of the server, or of this machine's disk: by its code and the command.
 * Does not own the failure's message. The server's own hints are for those who write the calls.
 */
import type { ErrorCode } from "../protocol/errors.ts";

const byCode: Partial<Record<ErrorCode, string>> = {
  unauthenticated: "`berth login` keeps another key; BERTH_KEY wins over it.",
  unavailable: "Try again; `berth login`, or BERTH_URL, says which server is asked.",
  operation_interrupted: "It may have been done: look before you repeat it.",
  lease_held: "`berth lock status` shows who; try again when it is free.",
  lease_pending: "`berth lock status` shows who; try again when it is free.",
  lease_wait_timeout: "Wait longer by --wait; `berth lock status` shows for whom.",
  lease_lost: "Run it again: what ran under the lease was ended.",
  file_not_found: "`berth exec -- ls` shows what is in the sandbox, below /workspace.",
  not_running: "`berth resume` wakes it.",
  start_failed: "`berth reset` makes a new one in its place.",
  sandbox_destroyed: "`berth list` shows those that are there, `berth start` makes one.",
  scope_taken: "Use it, or say --on-existing replace.",
  nothing_to_commit: "`--allow-empty` commits all the same; `berth plan add` adds a sandbox.",
  plan_busy: "Wait for its end: `berth plan show` tells of it.",
};

export const lastProcesses =
  "`berth ps --all` lists the processes; of the ended ones the last 50, for an hour.";

/** These ask for nothing that might not be there. */
const wrongAddress =
  "Look at the address of `berth login` or BERTH_URL: what answers there knows no such call.";

/** What is not there depends on what was asked for. */
const notFound: [command: string, hint: string][] = [
  [
    "berth plan",
    "`berth plan` lists the plans, `berth plan show` what is in one, `berth plan create` makes one.",
  ],
  ["berth list", wrongAddress],
  ["berth login", wrongAddress],
  ["berth logs", lastProcesses],
  ["berth kill", lastProcesses],
];

export function hintFor(code: ErrorCode, command: string): string | undefined {
  if (code === "unsupported" && command === "berth pause") {
    return "--discard-files pauses it without them.";
  }
  const ends = command === "berth plan delete" || command === "berth plan remove";
  if (code === "lease_held" && ends) return "Wait for it, or say --force.";
  if (code !== "not_found") return byCode[code];
  const [, known] = notFound.find(([name]) => command.startsWith(name)) ?? [];
  return known ?? "`berth list --all` shows those that there are.";
}

const onThisMachine: Record<string, string> = {
  ENOSPC: "Make room on this machine's disk.",
  EDQUOT: "Make room on this machine's disk.",
  EMFILE: "Too many files are open at once: `ulimit -n` says how many may be.",
};

/** Where a checkout's sandboxes are remembered, and what is being sent. */
const ours = /\/\.berth(\/|$)|\.git\/(.*\/)?berth(\/|$)/;

/** Of what this machine refuses: files that cannot be written, no room, and the like. */
export function hintForSystem(code: string, path: string | undefined): string {
  const known = onThisMachine[code];
  if (known !== undefined) return known;
  if (path !== undefined && ours.test(path)) {
    return "`.berth` and `.git/berth` of the checkout must be writable: that is where it is remembered.";
  }
  return "This user must be allowed to use what it names, and the folder that it lies in.";
}
