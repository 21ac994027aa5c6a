/**
 * Owns one clone from its call to its end: into a folder beside the place or inside of an empty one, which takes its
 * place when all is there; whatever ends it before leaves nothing.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { CloneCall, Cloned } from "../../../src/protocol/git.ts";
import { prepare } from "../archive/staging.ts";
import { runCommand } from "../exec/command.ts";
import type { Turn } from "../files/gated-write.ts";
import { placeOf, type Target, targetOf } from "../files/paths.ts";
import { refusalOf } from "../files/refusal.ts";
import { withRightsOf } from "../kernel/libc.ts";
import type { Ground } from "../sandbox.ts";
import { Unended } from "../supervision/process-tree.ts";
import { type Address, addressOf, folderNameOf } from "./address.ts";
import { without } from "./credentials.ts";
import type { CloneEvents } from "./events.ts";
import { runGit } from "./git.ts";
import { Progress } from "./progress.ts";

const lookTimeoutMs = 30_000;

type Around = { ground: Ground; base: string; turn: Turn; begun: () => CloneEvents };

/** `begun` is called when git is about to run; what is wrong before throws. */
export async function clone(call: CloneCall, around: Around): Promise<Cloned> {
  const { ground, base, turn } = around;
  const address = addressOf(call);
  const target = targetOf(folderNameOf(call), base);
  const { user } = ground.place;
  const staging = await prepare(target, user).catch((error) => {
    throw refusalOf(error, target.shown, "dir");
  });
  try {
    if (!staging.isOwn) throw taken(target);
    const folder = withRightsOf(user, () => placeOf(staging.root));
    turn.pass();
    await fetchInto(folder, { call, address, target, around });
    const cloned = await lookAt(folder, target, around);
    withRightsOf(user, () => {
      turn.pass();
      staging.take(undefined);
    });
    return cloned;
  } catch (error) {
    throw await ended(error, target);
  } finally {
    await staging.end();
  }
}

type Fetch = { call: CloneCall; address: Address; target: Target; around: Around };

async function fetchInto(folder: string, { call, address, target, around }: Fetch): Promise<void> {
  const { ground, turn } = around;
  const { branch, depth, timeoutMs } = call;
  let events: CloneEvents | undefined;
  const progress = new Progress((told) => events?.progress(told));
  const run = runGit(
    ground,
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
      said: (bytes) => progress.take(bytes),
    },
    turn.signal,
  );
  // What refuses at once is told with a status of its own.
  await Promise.race([run, new Promise((resolve) => setImmediate(resolve))]);
  events = around.begun();
  const { exitCode, signal, timedOut } = await run;
  if (exitCode === 0) return;
  const words = without(address.credentials, progress.lastWords).replaceAll(folder, target.shown);
  throw failed(timedOut ? `git did not end within ${timeoutMs} ms` : words, {
    exitCode,
    signal,
    timedOut,
  });
}

function failed(
  words: string,
  facts: { exitCode: number | null; signal: string | null; timedOut: boolean },
): BerthError {
  return new BerthError("clone_failed", words === "" ? "git said nothing" : words, { facts });
}

async function lookAt(folder: string, target: Target, { ground, turn }: Around): Promise<Cloned> {
  const look = await runCommand(
    {
      command: "git rev-parse -q --verify HEAD || echo; git symbolic-ref -q --short HEAD || echo",
      ...{ cwd: folder, timeoutMs: lookTimeoutMs, maxOutputBytes: 64 * 1024, encoding: "utf8" },
      ...{ execId: "", requestId: "" },
    },
    { place: ground.place, forest: ground.forest, gone: turn.signal },
  );
  const [commit = "", branch = ""] = look.stdout.split("\n");
  return { dir: target.shown, commit: commit || null, branch: branch || null };
}

function taken({ shown }: Target): BerthError {
  return new BerthError("file_exists", `${shown} is there already, and is not empty`, {
    hint: "give another dir, or remove it first",
    facts: { field: "dir", path: shown },
  });
}

/** Of a tree that the kernel does not let go: nothing is told or removed before it has. */
async function ended(error: unknown, target: Target): Promise<unknown> {
  if (error instanceof Unended) await error.gone;
  return refusalOf(error, target.shown, "dir");
}
