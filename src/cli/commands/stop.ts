/**
 * Owns `berth stop`: ends sandboxes for good. What is stopped already stays so, and that is no failure.
 */
import type { Berth } from "../../client/index.ts";
import { asBerthError } from "../../protocol/errors.ts";
import { flag } from "../args/option.ts";
import { optionalRest } from "../args/positional.ts";
import { checkId, readSandbox, sandboxOptions } from "../args/sandbox.ts";
import { findCheckout, readCheckout } from "../checkout/checkout.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { hintFor } from "../hints.ts";
import { forEach, listAll } from "../list-all.ts";
import { Memory } from "../state/memory.ts";
import { untilDestroyed } from "../until-destroyed.ts";

type Stopped = { id: string; wasRunning: boolean; state: string };
type Failed = { id: string; error: { code: string; message: string; hint?: string } };

export const stopCommand = command({
  name: "stop",
  summary: "end the sandbox for good, with its files",
  about: "To keep the files, pause it instead.",
  args: { sandboxes: optionalRest("sandbox", "those, by their ids") },
  options: {
    ...sandboxOptions,
    all: flag("-a, --all", "all sandboxes of this repository"),
    force: flag("--force", "also one whose lease somebody holds"),
  },
  examples: [
    ["That of this checkout", "berth stop"],
    ["One of the list", "berth stop k3v9q2m7x1c5b8n4tq0w8e2r"],
    ["All of this repository", "berth stop --all"],
  ],
  async run(context, { args: { sandboxes }, options: { all, force, ...which } }) {
    const { id, config } = readSandbox(which);
    const named = id === undefined ? sandboxes : [id, ...sandboxes];
    const ids = await idsOf(context, named, { config, all });
    const ended = await forEach(ids, (id) => stop(context.berth, id, force));
    context.progress.end();
    const checkout = findCheckout(context.cwd);
    const stopped = ended.filter((one) => !("error" in one));
    if (checkout !== undefined) {
      new Memory(checkout, context.output).forget(stopped.map(({ id }) => id));
    }
    tell(context, ended);
    return stopped.length === ended.length ? 0 : 1;
  },
});

async function idsOf(
  context: Context,
  named: string[],
  { config, all }: { config: string | undefined; all: boolean },
): Promise<string[]> {
  if (named.length > 0) {
    if (all || config !== undefined) {
      throw new Failure("ids cannot be said together with --all or --config", {
        code: "bad_usage",
      });
    }
    return [...new Set(named.map((id) => checkId(id, "stop")))];
  }
  context.progress.tell("asking the server");
  if (all) {
    const { repo } = readCheckout(context.cwd, true);
    return (await listAll(context.berth, { "scope.repo": repo })).map(({ id }) => id);
  }
  try {
    return [(await findSandbox(context, { config, make: false, ready: false })).id];
  } catch (thrown) {
    if (thrown instanceof Failure && thrown.code === "no_sandbox") return [];
    throw thrown;
  }
}

async function stop(berth: Berth, id: string, force: boolean): Promise<Stopped | Failed> {
  const sandbox = berth.sandbox(id);
  try {
    const before = await sandbox.get();
    if (before.state === "destroyed") return { id, wasRunning: false, state: before.state };
    const after = await sandbox.destroy({ force });
    return { id, wasRunning: true, state: (await untilDestroyed(sandbox, after)).state };
  } catch (thrown) {
    const known = asBerthError(thrown);
    if (known === undefined) throw thrown;
    if (known.code === "sandbox_destroyed") return { id, wasRunning: false, state: "destroyed" };
    const isHeld = known.code === "lease_held";
    const todo = isHeld ? "Wait for it, or say --force." : hintFor(known.code, "berth stop");
    const hint = todo === undefined ? {} : { hint: todo };
    return { id, error: { code: known.code, message: known.message, ...hint } };
  }
}

function tell({ output, json }: Context, ended: (Stopped | Failed)[]): void {
  if (json) {
    output.document({ sandboxes: ended });
    return;
  }
  if (ended.length === 0) output.line("already stopped: there is no sandbox");
  for (const one of ended) {
    if ("error" in one) {
      output.say(`${output.paint("red", "error:")} ${one.id}: ${one.error.message}`);
      if (one.error.hint !== undefined)
        output.say(`${output.paint("cyan", "hint:")} ${one.error.hint}`);
    } else if (!one.wasRunning) {
      output.line(`sandbox ${one.id} was already stopped`);
    } else if (one.state === "destroyed") {
      output.line(`sandbox ${one.id} is stopped`);
    } else {
      output.line(`sandbox ${one.id} is stopping`);
      output.warn(
        `sandbox ${one.id} is not gone yet`,
        "The server goes on; `berth list` shows when.",
      );
    }
  }
}
