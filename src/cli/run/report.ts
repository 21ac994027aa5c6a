/**
 * Owns what is said of a run when it is over: for people on stderr, for programs as one document.
 * Does not own the command's own output.
 */
import { asBerthError } from "../../protocol/errors.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import type { Found } from "../find-sandbox.ts";
import type { Output } from "../output/output.ts";
import type { Outcome, PullOutcome } from "./run.ts";

const namedMax = 10;

const stillThere =
  "It is still in the sandbox: `berth cp :<path> .` fetches it, the next `berth exec` undoes it.";

export function tell(
  { output }: Context,
  { id }: Pick<Found, "id">,
  { ended, pull }: Outcome,
  timeoutMs?: number,
): void {
  if (ended.timedOut) output.say(`ended: it took longer than ${(timeoutMs ?? 0) / 1000} s`);
  if (pull === null) return;
  if (pull.status === "failed") {
    output.warn(
      `what the command changed could not be fetched: ${wordsOf(pull.thrown)}`,
      hintOf(pull) ?? stillThere,
    );
    return;
  }
  const { changed, conflicts, kept, refused, newCommits } = pull;
  if (changed.length > 0) output.say(`changed here: ${namesOf(changed)}`);
  for (const { path, savedAs } of conflicts) {
    output.warn(
      `${name(path)} was changed here too, and is kept; the sandbox's is ${name(savedAs)}`,
    );
  }
  for (const path of kept) {
    output.warn(`${name(path)} was removed in the sandbox, and changed here: it is kept`);
  }
  for (const { path, why } of refused) output.warn(`${name(path)} was not fetched: ${why}`);
  if (newCommits !== undefined) tellMoved(output, id, newCommits);
}

export function documentOf(
  { id, drifted }: Pick<Found, "id" | "drifted">,
  { ended, durationMs, sync, pull }: Outcome,
  output: Record<string, unknown>,
): Record<string, unknown> {
  const configChanged = drifted;
  const how = { ...ended, ...output, durationMs, sync, pull: pullDocument(pull) };
  return { sandbox: id, configChanged, ...how };
}

function tellMoved(output: Output, id: string, newCommits: number): void {
  if (newCommits === 0) {
    output.warn("HEAD was moved in the sandbox; the next `berth exec` puts it back");
    return;
  }
  const commits = newCommits === 1 ? "1 new commit" : `${newCommits} new commits`;
  // With --id the checkout is not brought, which would put HEAD back.
  output.warn(
    `the sandbox has ${commits}: files come back, commits do not`,
    `Commit here; until the next \`berth exec\` they are in \`berth exec --id ${id} -- git log\`.`,
  );
}

function pullDocument(pull: PullOutcome | null): unknown {
  if (pull?.status !== "failed") return pull;
  const known = asBerthError(pull.thrown);
  const code = known?.code ?? (pull.thrown as { code?: unknown }).code ?? "internal";
  return { status: "failed", error: { ...known?.facts, code, message: wordsOf(pull.thrown) } };
}

function wordsOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

function hintOf({ thrown }: Extract<PullOutcome, { status: "failed" }>): string | undefined {
  return thrown instanceof Failure ? thrown.hint : undefined;
}

function namesOf(paths: string[]): string {
  const more = paths.length - namedMax;
  return paths.slice(0, namedMax).map(name).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** A name with spaces or control characters is shown as what it is. */
function name(path: string): string {
  return /^[\p{L}\p{N}\p{S}._/@+=,:%-]+$/u.test(path) ? path : JSON.stringify(path);
}
