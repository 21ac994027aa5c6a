/** The next step for each failure, by error code and command. The server's hints are for people who write API calls. */
import type { ErrorCode } from "../protocol/error-codes.ts";

const byCode: Partial<Record<ErrorCode, string>> = {
  unauthenticated: "Run `berth login` to store another key. BERTH_KEY overrides it.",
  unavailable:
    "Is the server running? `npm start` starts one here; BERTH_URL or `berth login` names another.",
  disk_full:
    "The server's disk is full. Free room: remove sandboxes or checkpoints, or files with `berth exec --id <sandbox> -- rm …`.",
  forbidden:
    "Use a key or a token with this right: `berth token --right …` and `berth keys add` make them.",
  operation_interrupted: "It may have taken effect. Check before you repeat it.",
  lease_held: "Run `berth lock status` to see the holder. Try again when the lease is free.",
  lease_pending: "Run `berth lock status` to see the holder. Try again when the lease is free.",
  lease_wait_timeout: "Wait longer with `--wait`. `berth lock status` shows the holder.",
  stale_handle:
    "The server or the sandbox was restarted while it ran: it was ended, and not run again.",
  lease_lost: "Run it again: everything that ran under the lease was ended.",
  file_not_found: "Run `berth exec -- ls` to see the files in the sandbox, below /workspace.",
  not_running: "Run `berth resume` to wake it.",
  start_failed: "Run `berth resume` to start it again with its files.",
  sandbox_destroyed:
    "Run `berth list` to see the existing sandboxes, or `berth start` to create one.",
  scope_taken: "Use that one, or replace it with `--on-existing replace`.",
  nothing_to_commit:
    "Use `--allow-empty` to commit anyway, or add a sandbox with `berth plan add`.",
  plan_busy: "Wait until it ends. `berth plan show` shows its state.",
};

export const processesHint =
  "Run `berth ps --all` to list the processes. The last 50 that ended stay for an hour.";

/** These commands only call routes that every Berth has. */
const wrongAddress =
  "Check the address in `berth login` or BERTH_URL: the server there does not know this call.";

/** The hint for `not_found` depends on what the command looked for. */
const notFound: [command: string, hint: string][] = [
  [
    "berth plan",
    "Run `berth plan` to list the plans, `berth plan show` to see one, `berth plan create` to create one.",
  ],
  ["berth list", wrongAddress],
  ["berth login", wrongAddress],
  ["berth logs", processesHint],
  ["berth kill", processesHint],
];

const canForce = new Set(["berth stop", "berth rm", "berth plan delete", "berth plan remove"]);

export function hintFor(code: ErrorCode, command: string): string | undefined {
  if (code === "unsupported" && (command === "berth pause" || command === "berth stop")) {
    return "Use `--discard-files` to stop it without saving its files.";
  }
  if (code === "lease_held" && canForce.has(command)) {
    return "Wait for the lease, or use `--force`.";
  }
  if (code !== "not_found") return byCode[code];
  const [, hint] = notFound.find(([name]) => command.startsWith(name)) ?? [];
  return hint ?? "Run `berth list --all` to see all sandboxes.";
}

const onThisMachine: Record<string, string> = {
  ENOSPC: "Free disk space on this machine.",
  EDQUOT: "Free disk space on this machine.",
  EMFILE: "Too many files are open. `ulimit -n` shows the limit.",
};

/** Where the local state of a checkout and files in transit are. */
const berthFiles = /\/\.berth(\/|$)|\.git\/(.*\/)?berth(\/|$)/;

/** For failures of this machine: files that cannot be written, a full disk, and the like. */
export function hintForSystem(code: string, path: string | undefined): string {
  const hint = onThisMachine[code];
  if (hint !== undefined) return hint;
  if (path !== undefined && berthFiles.test(path)) {
    return "`.berth` and `.git/berth` of the checkout must be writable: Berth keeps its local state there.";
  }
  return "Check that this user has access to the file and its folder.";
}
