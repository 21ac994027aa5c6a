/** `berth rm`: removes sandboxes with their files. Removing one that is removed is not a failure. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Sandbox as SandboxHandle } from "../../client/index.ts";
import { asBerthError } from "../../protocol/error-codes.ts";
import type { Sandbox } from "../../protocol/sandbox.ts";
import { flag, optionalRest } from "../args/option.ts";
import { checkSandboxId, parseSandboxOptions, sandboxOptions } from "../args/sandbox-options.ts";
import { findCheckout, readCheckout } from "../checkout/checkout.ts";
import { readPerson } from "../checkout/person.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { hintFor } from "../hints.ts";
import { listAll, mapConcurrently } from "../list-all.ts";
import { confirmRemoval } from "../removal.ts";
import { LocalState } from "../state/local-state.ts";

const waitMs = 30_000;
const pollMs = 250;

type RemovedSandbox = { id: string; wasThere: boolean; state: string };
type FailedRemoval = {
  id: string;
  error: { code: string; message: string; hint?: string | undefined };
};

export const rmCommand = command({
  name: "rm",
  summary: "Remove the sandbox and its files",
  about:
    "Asks at a terminal where a sandbox has work that no checkout has, or was made by somebody else; without a terminal it refuses. To keep the files, use `berth stop`.",
  args: { sandboxes: optionalRest("sandbox", "Ids of sandboxes (default: the checkout's)") },
  options: {
    ...sandboxOptions,
    all: flag("-a, --all", "All of yours in this repository"),
    force: flag("--force", "Even if somebody holds the lease"),
    yes: flag("-y, --yes", "Do not ask"),
  },
  examples: [
    ["The sandbox of this checkout", "berth rm"],
    ["A sandbox by its id", "berth rm k3v9q2m7x1c5b8n4tq0w8e2r"],
    ["All of yours in this repository, in a script", "berth rm --all --yes"],
  ],
  async run(context, { args: { sandboxes }, options: { all, force, yes, ...which } }) {
    const { id, config } = parseSandboxOptions(which);
    const given = id === undefined ? sandboxes : [id, ...sandboxes];
    const ids = await resolveIds(context, given, { config, all });
    const person = readPerson(context.cwd, context.env);
    const ended: (RemovedSandbox | FailedRemoval)[] = [];
    // One after the other: each may ask.
    const options = { force, person: yes ? undefined : person };
    if (yes) ended.push(...(await mapConcurrently(ids, (id) => remove(context, id, options))));
    else for (const id of ids) ended.push(await remove(context, id, options));
    context.progress.end();
    const checkout = findCheckout(context.cwd);
    const removed = ended.filter((result) => !("error" in result));
    if (checkout !== undefined) {
      new LocalState(checkout, context.output).forget(removed.map(({ id }) => id));
    }
    printResults(context, ended);
    return removed.length === ended.length ? 0 : 1;
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
    return [...new Set(given.map((id) => checkSandboxId(id, "rm")))];
  }
  context.progress.show("Asking the server");
  if (all) {
    const { repo } = readCheckout(context.cwd, true);
    const person = readPerson(context.cwd, context.env);
    const mine = await listAll(context.berth, { scope: { repo }, mine: true });
    return mine.filter(({ client }) => (client?.user ?? person) === person).map(({ id }) => id);
  }
  try {
    return [(await findSandbox(context, { config, make: false, ready: false })).id];
  } catch (thrown) {
    if (thrown instanceof Failure && thrown.code === "no_sandbox") return [];
    throw thrown;
  }
}

/** Without a person nobody is asked. */
type RemoveOptions = { force: boolean; person: string | undefined };

async function remove(
  context: Context,
  id: string,
  { force, person }: RemoveOptions,
): Promise<RemovedSandbox | FailedRemoval> {
  const sandbox = context.berth.sandbox(id);
  try {
    const before = await sandbox.get();
    if (before.state === "destroyed") return { id, wasThere: false, state: before.state };
    if (person !== undefined) await confirmRemoval(context, sandbox, before, { person, force });
    const after = await sandbox.delete({ force });
    return { id, wasThere: true, state: (await waitUntilDestroyed(sandbox, after)).state };
  } catch (thrown) {
    if (thrown instanceof Failure) {
      const { code, message, hint } = thrown;
      return { id, error: { code, message, hint } };
    }
    const known = asBerthError(thrown);
    if (known === undefined) throw thrown;
    if (known.code === "sandbox_destroyed") return { id, wasThere: false, state: "destroyed" };
    const { code, message } = known;
    return { id, error: { code, message, hint: hintFor(code, "berth rm") } };
  }
}

function printResults({ output, json }: Context, ended: (RemovedSandbox | FailedRemoval)[]): void {
  if (json) return void output.printJson({ sandboxes: ended });
  if (ended.length === 0) output.print("There is no sandbox to remove.");
  for (const result of ended) {
    if ("error" in result) {
      const { message, hint } = result.error;
      output.error(message.includes(result.id) ? message : `${result.id}: ${message}`, hint);
    } else if (!result.wasThere) {
      output.print(`Sandbox ${result.id} was already removed.`);
    } else if (result.state === "destroyed") {
      output.print(`Sandbox ${result.id} is removed.`);
    } else {
      output.print(`Sandbox ${result.id} is being removed.`);
      output.warn(
        `Sandbox ${result.id} is not removed yet.`,
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
