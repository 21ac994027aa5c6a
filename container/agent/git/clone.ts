/**
 * Clones one repository, either into a new folder next to the target or inside the empty target, and moves it into place
 * when it is complete. A clone that ends early leaves nothing behind.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { CloneCall, Cloned } from "../../../src/protocol/file.ts";
import { prepare } from "../archive/staging.ts";
import { runCommand } from "../exec/command.ts";
import { toFileError } from "../files/file-errors.ts";
import { realPathOf, type Target, targetOf } from "../files/paths.ts";
import { withUserRights } from "../kernel/libc.ts";
import type { SandboxDeps } from "../sandbox-deps.ts";
import { KillTimeoutError } from "../supervision/process-tree.ts";
import { type Address, folderNameOf, parseAddress } from "./address.ts";
import { redact, runGit } from "./git.ts";
import { type CloneEvents, ProgressReader } from "./progress.ts";

const readHeadTimeoutMs = 30_000;

type CloneOptions = {
  deps: SandboxDeps;
  /** Relative paths begin here. */
  base: string;
  /** Ends the clone. */
  signal: AbortSignal;
  /** Called when git is about to run; what fails before that throws. */
  onStarted: () => CloneEvents;
};

export async function clone(call: CloneCall, options: CloneOptions): Promise<Cloned> {
  const { deps, base, signal } = options;
  const address = parseAddress(call);
  const target = targetOf(folderNameOf(call), base);
  const { user } = deps.sandboxEnv;
  const staging = await prepare(target, user).catch((error) => {
    throw toFileError(error, target.shown, "dir");
  });
  try {
    if (!staging.isOwn) throw folderNotEmpty(target);
    const folder = withUserRights(user, () => realPathOf(staging.root));
    signal.throwIfAborted();
    await fetchInto(folder, { call, address, target }, options);
    const cloned = await readHead(folder, target, options);
    withUserRights(user, () => {
      signal.throwIfAborted();
      staging.moveIntoPlace(undefined);
    });
    return cloned;
  } catch (error) {
    // Until the kernel has ended the last process, nothing can be removed.
    if (error instanceof KillTimeoutError) await error.ended;
    throw toFileError(error, target.shown, "dir");
  } finally {
    await staging.end();
  }
}

async function fetchInto(
  folder: string,
  { call, address, target }: { call: CloneCall; address: Address; target: Target },
  { deps, signal: ends, onStarted }: CloneOptions,
): Promise<void> {
  const { branch, depth, timeoutMs } = call;
  const { url, credentials } = address;
  const choices = [
    ...(branch === undefined ? [] : [`--branch=${branch}`]),
    ...(depth === undefined ? [] : [`--depth=${depth}`]),
  ];
  const args = ["clone", "--progress", ...choices, "--", url, folder];
  let events: CloneEvents | undefined;
  const reader = new ProgressReader((progress) => events?.progress(progress));
  const onStderr = (bytes: Uint8Array) => reader.take(bytes);
  const run = runGit(deps, { args, cwd: folder, credentials, timeoutMs, onStderr }, ends);
  // What fails at once gets a status of its own.
  await Promise.race([run, new Promise((resolve) => setImmediate(resolve))]);
  events = onStarted();
  const { exitCode, signal, timedOut } = await run;
  if (exitCode === 0) return;
  const messages = redact(credentials, reader.lastLines).replaceAll(folder, target.shown);
  const reason = timedOut ? `git did not end within ${timeoutMs} ms` : messages;
  throw new BerthError("clone_failed", reason === "" ? "git printed nothing" : reason, {
    facts: { exitCode, signal, timedOut },
  });
}

async function readHead(
  folder: string,
  target: Target,
  { deps, signal }: CloneOptions,
): Promise<Cloned> {
  const { stdout } = await runCommand(
    {
      command: "git rev-parse -q --verify HEAD || echo; git symbolic-ref -q --short HEAD || echo",
      ...{ cwd: folder, timeoutMs: readHeadTimeoutMs, maxOutputBytes: 64 * 1024 },
      ...{ encoding: "utf8", execId: "", requestId: "" },
    },
    deps,
    signal,
  );
  const [commit = "", branch = ""] = stdout.split("\n");
  return { dir: target.shown, commit: commit || null, branch: branch || null };
}

function folderNotEmpty({ shown }: Target): BerthError {
  return new BerthError("file_exists", `${shown} exists already and is not empty.`, {
    hint: "Choose another dir, or remove it first.",
    facts: { field: "dir", path: shown },
  });
}
