/** `berth stop`: destroys sandboxes. Stopping one that is stopped is not a failure. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Berth, Sandbox as SandboxHandle } from "../../client/index.ts";
import { asBerthError } from "../../protocol/error-codes.ts";
import type { Sandbox } from "../../protocol/sandbox.ts";
import { flag, optionalRest } from "../args/option.ts";
import { checkSandboxId, parseSandboxOptions, sandboxOptions } from "../args/sandbox-options.ts";
import { findCheckout, readCheckout } from "../checkout/checkout.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { hintFor } from "../hints.ts";
import { listAll, mapConcurrently } from "../list-all.ts";
import { LocalState } from "../state/local-state.ts";

const waitMs = 30_000;
const pollMs = 250;

type StoppedSandbox = { id: string; wasRunning: boolean; state: string };
type FailedStop = {
  id: string;
  error: { code: string; message: string; hint?: string | undefined };
};

export const stopCommand = command({
  name: "stop",
  summary: "Destroy the sandbox and its files",
  about: "To keep the files, use `berth pause`.",
  args: { sandboxes: optionalRest("sandbox", "Ids of sandboxes (default: the checkout's)") },
  options: {
    ...sandboxOptions,
    all: flag("-a, --all", "All sandboxes of this repository"),
    force: flag("--force", "Even if somebody holds the lease"),
  },
  examples: [
    ["The sandbox of this checkout", "berth stop"],
    ["A sandbox by its id", "berth stop k3v9q2m7x1c5b8n4tq0w8e2r"],
    ["All of this repository", "berth stop --all"],
  ],
  async run(context, { args: { sandboxes }, options: { all, force, ...which } }) {
    const { id, config } = parseSandboxOptions(which);
    const given = id === undefined ? sandboxes : [id, ...sandboxes];
    const ids = await resolveIds(context, given, { config, all });
    const ended = await mapConcurrently(ids, (id) => stop(context.berth, id, force));
    context.progress.end();
    const checkout = findCheckout(context.cwd);
    const stopped = ended.filter((result) => !("error" in result));
    if (checkout !== undefined) {
      new LocalState(checkout, context.output).forget(stopped.map(({ id }) => id));
    }
    printResults(context, ended);
    return stopped.length === ended.length ? 0 : 1;
  },
});

async function resolveIds(
  context: Context,
  given: string[],
  { config, all }: { config: string | undefined; all: boolean },
): Promise<string[]> {
  if (given.length > 0) {
    if (all || config !== undefined) {
      throw new Failure("Ids cannot be combined with `--all` or `--config`.", {
        code: "bad_usage",
      });
    }
    return [...new Set(given.map((id) => checkSandboxId(id, "stop")))];
  }
  context.progress.show("Asking the server");
  if (all) {
    const { repo } = readCheckout(context.cwd, true);
    return (await listAll(context.berth, { scope: { repo } })).map(({ id }) => id);
  }
  try {
    return [(await findSandbox(context, { config, make: false, ready: false })).id];
  } catch (thrown) {
    if (thrown instanceof Failure && thrown.code === "no_sandbox") return [];
    throw thrown;
  }
}

async function stop(
  berth: Berth,
  id: string,
  force: boolean,
): Promise<StoppedSandbox | FailedStop> {
  const sandbox = berth.sandbox(id);
  try {
    const before = await sandbox.get();
    if (before.state === "destroyed") return { id, wasRunning: false, state: before.state };
    const after = await sandbox.delete({ force });
    return { id, wasRunning: true, state: (await waitUntilDestroyed(sandbox, after)).state };
  } catch (thrown) {
    const known = asBerthError(thrown);
    if (known === undefined) throw thrown;
    if (known.code === "sandbox_destroyed") return { id, wasRunning: false, state: "destroyed" };
    const { code, message } = known;
    return { id, error: { code, message, hint: hintFor(code, "berth stop") } };
  }
}

function printResults({ output, json }: Context, ended: (StoppedSandbox | FailedStop)[]): void {
  if (json) return void output.printJson({ sandboxes: ended });
  if (ended.length === 0) output.print("There is no sandbox to stop.");
  for (const result of ended) {
    if ("error" in result) {
      output.error(`${result.id}: ${result.error.message}`, result.error.hint);
    } else if (!result.wasRunning) {
      output.print(`Sandbox ${result.id} was already stopped.`);
    } else if (result.state === "destroyed") {
      output.print(`Sandbox ${result.id} is stopped.`);
    } else {
      output.print(`Sandbox ${result.id} is stopping.`);
      output.warn(
        `Sandbox ${result.id} has not stopped yet.`,
        "The server continues. `berth list` shows its state.",
      );
    }
  }
}

/** Resolves to the sandbox after at most 30 s, destroyed or not. */
async function waitUntilDestroyed(sandbox: SandboxHandle, view: Sandbox): Promise<Sandbox> {
  const limit = Date.now() + waitMs;
  let current = view;
  while (current.state !== "destroyed" && Date.now() < limit) {
    await sleep(pollMs);
    current = await sandbox.get();
  }
  return current;
}
