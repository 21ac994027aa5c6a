/** Prints the result of a run: for people on stderr, for programs as one document. */
import { asBerthError } from "../../protocol/error-codes.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import type { FoundSandbox } from "../find-sandbox.ts";
import type { Output } from "../output/output.ts";
import type { PullOutcome, RunOutcome } from "./run.ts";

const pathsShownMax = 10;

const stillInSandbox = "The changes are still in the sandbox: `berth pull` fetches them.";

export function printReport(
  { output }: Context,
  { id }: Pick<FoundSandbox, "id">,
  { ended, pull }: RunOutcome,
  timeoutMs?: number,
): void {
  if (ended.timedOut)
    output.info(`The command was ended: it took longer than ${(timeoutMs ?? 0) / 1000} s.`);
  const { leftovers = 0 } = ended;
  if (leftovers > 0) {
    const what = leftovers === 1 ? "1 process" : `${leftovers} processes`;
    output.info(`Ended ${what} that it left running. \`berth run\` starts what should stay.`);
  }
  if (pull !== null) printPulled(output, id, pull);
}

/** What came back, and what did not. */
export function printPulled(output: Output, id: string, pull: PullOutcome): void {
  if (pull.status === "failed") {
    const hint = pull.thrown instanceof Failure ? pull.thrown.hint : undefined;
    const message = messageOf(pull.thrown);
    output.warn(`The changes could not be fetched: ${message}`, hint ?? stillInSandbox);
    return;
  }
  const { changed, conflicts, kept, refused, newCommits } = pull;
  if (changed.length > 0) output.info(`Changed here: ${formatPaths(changed)}`);
  for (const { path, savedAs } of conflicts) {
    output.warn(
      `${formatPath(path)} was changed here too and stays; the sandbox's version is ${formatPath(savedAs)}.`,
    );
  }
  for (const path of kept) {
    output.warn(`${formatPath(path)} was removed in the sandbox but changed here, so it stays.`);
  }
  for (const { path, why } of refused) output.warn(`${formatPath(path)} was not fetched: ${why}.`);
  if (newCommits !== undefined) warnOfCommits(output, id, newCommits);
}

export function toRunDocument(
  { id, drifted }: Pick<FoundSandbox, "id" | "drifted">,
  { ended, durationMs, sync, pull }: RunOutcome,
  output: Record<string, unknown>,
): Record<string, unknown> {
  const fields = { ...ended, ...output, durationMs, sync, pull: pullDocument(pull) };
  return { sandbox: id, configChanged: drifted, ...fields };
}

function warnOfCommits(output: Output, id: string, newCommits: number): void {
  if (newCommits === 0) {
    output.warn("HEAD was moved in the sandbox. The next `berth exec` resets it.");
    return;
  }
  const commits = newCommits === 1 ? "1 new commit" : `${newCommits} new commits`;
  // With `--id` no checkout is sent, which would reset HEAD.
  output.warn(
    `The sandbox has ${commits}. Files are fetched, commits are not.`,
    `Commit here. \`berth exec --id ${id} -- git log\` shows them; the next \`berth exec\` keeps them.`,
  );
}

export function pullDocument(pull: PullOutcome | null): unknown {
  if (pull?.status !== "failed") return pull;
  const known = asBerthError(pull.thrown);
  const code = known?.code ?? (pull.thrown as { code?: unknown }).code ?? "internal";
  return { status: "failed", error: { ...known?.facts, code, message: messageOf(pull.thrown) } };
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

export function formatPaths(paths: string[]): string {
  const more = paths.length - pathsShownMax;
  const shown = paths.slice(0, pathsShownMax).map(formatPath).join(", ");
  return more > 0 ? `${shown} and ${more} more` : shown;
}

/** Quotes a name with spaces or control characters. */
function formatPath(path: string): string {
  return /^[\p{L}\p{N}\p{S}._/@+=,:%-]+$/u.test(path) ? path : JSON.stringify(path);
}
