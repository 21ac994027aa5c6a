/** Decides whether a sandbox may be removed without a question: nobody's work and nobody else's sandbox is. */
import { createInterface } from "node:readline/promises";
import type { Sandbox as SandboxHandle } from "../client/index.ts";
import { asBerthError } from "../protocol/error-codes.ts";
import type { Sandbox } from "../protocol/sandbox.ts";
import type { Context } from "./context.ts";
import { Failure } from "./failure.ts";
import { countWorkScript } from "./sync/count-script.ts";

/** Why somebody should be asked first; each continues "sandbox … ". */
type Objection = { code: "unsynced_work" | "other_maker"; text: string };

/** What a sandbox tells about its maker. */
type Made = Pick<Sandbox, "id" | "state" | "scope" | "client" | "madeBy">;

/** Throws unless the sandbox has nothing to lose, or somebody agreed at the terminal. */
export async function confirmRemoval(
  context: Context,
  sandbox: SandboxHandle,
  view: Made,
  { person, force = false }: { person: string; force?: boolean | undefined },
): Promise<void> {
  const objections = [
    ...findOtherMaker(view, person),
    ...(await findUnsyncedWork(context, sandbox, view, force)),
  ];
  const [first] = objections;
  if (first === undefined) return;
  context.progress.end();
  const text = objections.map((objection) => objection.text).join(", and ");
  if (context.stdin.isTTY === true && context.tty && !context.json) {
    if (await ask(context, `Sandbox ${view.id} ${text}. Remove it? [y/N] `)) return;
    throw new Failure("Nothing was removed.", { code: "not_confirmed" });
  }
  throw new Failure(`Sandbox ${view.id} ${text}.`, {
    hint:
      first.code === "unsynced_work"
        ? "`berth pull` fetches its files. `--yes` removes it anyway."
        : "`--yes` removes it anyway.",
    code: first.code,
    facts: { sandbox: view.id },
  });
}

function findOtherMaker({ scope, client }: Made, person: string | undefined): Objection[] {
  const maker = scope?.owner ?? client?.user;
  if (maker === undefined || person === undefined || maker === person) return [];
  return [{ code: "other_maker", text: `was made by ${maker}` }];
}

/** Runs in the sandbox, because only its files tell. One that is paused is woken for it. */
async function findUnsyncedWork(
  { progress, interrupts }: Context,
  sandbox: SandboxHandle,
  { state }: Made,
  force: boolean,
): Promise<Objection[]> {
  if (state === "destroyed" || state === "destroying") return [];
  progress.show(`Looking for work that only ${sandbox.id} has`);
  const argv = ["sh", "-c", countWorkScript, "berth-sync", "/workspace"];
  const unknown: Objection = {
    code: "unsynced_work",
    text: "may have files that no checkout has: it cannot be asked",
  };
  try {
    const signal = interrupts.requested;
    const { exitCode, stdout } = await sandbox.exec({ argv, cwd: "/" }, { signal });
    const [, files, commits] = /^(\d+) (\d+)\n$/.exec(stdout) ?? [];
    if (exitCode !== 0 || files === undefined) return [unknown];
    const work = [
      formatCount(Number(files), "file"),
      formatCount(Number(commits), "commit"),
    ].flat();
    if (work.length === 0) return [];
    return [{ code: "unsynced_work", text: `has ${work.join(" and ")} that no checkout has` }];
  } catch (thrown) {
    interrupts.requested.throwIfAborted();
    const code = asBerthError(thrown)?.code;
    if (code === "sandbox_destroyed") return [];
    // Without force the removal itself refuses while somebody holds the lease.
    const isHeld = code === "lease_held" || code === "lease_pending";
    if (isHeld) return force ? [unknown] : [];
    if (code === undefined || code === "unauthenticated" || code === "not_found") throw thrown;
    return [unknown];
  }
}

function formatCount(count: number, noun: string): string[] {
  return count === 0 ? [] : [count === 1 ? `1 ${noun}` : `${count} ${noun}s`];
}

async function ask({ stdin, stderr, interrupts }: Context, question: string): Promise<boolean> {
  const lines = createInterface({ input: stdin, output: stderr });
  try {
    const answer = await lines.question(question, { signal: interrupts.requested });
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    lines.close();
  }
}
