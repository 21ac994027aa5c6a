/**
 * Clones one repository, either into a new folder next to the target or inside the empty target, and moves it into place
 * when it is complete. A clone that ends early leaves nothing behind.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { CloneCall, Cloned } from "../../../src/protocol/file.ts";
import { prepare } from "../archive/staging.ts";
import { runCommand } from "../exec/command.ts";
import { toFileError } from "../files/file-errors.ts";
import type { GatedWrite } from "../files/gated-write.ts";
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
  write: GatedWrite;
  /** Called when git is about to run; what fails before that throws. */
  onStarted: () => CloneEvents;
};

export async function clone(call: CloneCall, options: CloneOptions): Promise<Cloned> {
  const { deps, base, write } = options;
  const address = parseAddress(call);
  const target = targetOf(folderNameOf(call), base);
  const { user } = deps.sandboxEnv;
  const staging = await prepare(target, user).catch((error) => {
    throw toFileError(error, target.shown, "dir");
  });
  try {
    if (!staging.isOwn) throw folderNotEmpty(target);
    const folder = withUserRights(user, () => realPathOf(staging.root));
    write.throwIfEnded();
    await fetchInto(folder, { call, address, target, options });
    const cloned = await readHead(folder, target, options);
    withUserRights(user, () => {
      write.throwIfEnded();
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

type Fetch = { call: CloneCall; address: Address; target: Target; options: CloneOptions };

async function fetchInto(folder: string, { call, address, target, options }: Fetch): Promise<void> {
  const { branch, depth, timeoutMs } = call;
  let events: CloneEvents | undefined;
  const reader = new ProgressReader((progress) => events?.progress(progress));
  const run = runGit(
    options.deps,
    {
      args: [
        ...["clone", "--progress"],
        ...(branch === undefined ? [] : [`--branch=${branch}`]),
        ...(depth === undefined ? [] : [`--depth=${depth}`]),
        ...["--", address.url, folder],
      ],
      cwd: folder,
      credentials: address.credentials,
      timeoutMs,
      onStderr: (bytes) => reader.take(bytes),
    },
    options.write.signal,
  );
  // What fails at once gets a status of its own.
  await Promise.race([run, new Promise((resolve) => setImmediate(resolve))]);
  events = options.onStarted();
  const { exitCode, signal, timedOut } = await run;
  if (exitCode === 0) return;
  const messages = redact(address.credentials, reader.lastLines).replaceAll(folder, target.shown);
  const reason = timedOut ? `git did not end within ${timeoutMs} ms` : messages;
  throw new BerthError("clone_failed", reason === "" ? "git printed nothing" : reason, {
    facts: { exitCode, signal, timedOut },
  });
}

async function readHead(
  folder: string,
  target: Target,
  { deps, write }: CloneOptions,
): Promise<Cloned> {
  const { stdout } = await runCommand(
    {
      command: "git rev-parse -q --verify HEAD || echo; git symbolic-ref -q --short HEAD || echo",
      ...{ cwd: folder, timeoutMs: readHeadTimeoutMs, maxOutputBytes: 64 * 1024 },
      ...{ encoding: "utf8", execId: "", requestId: "" },
    },
    deps,
    write.signal,
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
