/** `berth stop`: ends what runs in sandboxes and keeps their files. The same as a pause, for several at once. */
import { flag, optionalRest } from "../args/option.ts";
import { checkSandboxId, parseSandboxOptions, sandboxOptions } from "../args/sandbox-options.ts";
import { readCheckout } from "../checkout/checkout.ts";
import { readPerson } from "../checkout/person.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { findExistingSandbox } from "../find-sandbox.ts";
import { listAll } from "../list-all.ts";

export const stopCommand = command({
  name: "stop",
  summary: "Stop the sandbox, keep its files",
  about: "Ends its processes. The next use wakes it. `berth rm` removes it with its files.",
  args: { sandboxes: optionalRest("sandbox", "Ids of sandboxes (default: the checkout's)") },
  options: {
    ...sandboxOptions,
    all: flag("-a, --all", "All of yours in this repository that run"),
    force: flag("--force", "Even if somebody holds the lease"),
    discardFiles: flag("--discard-files", "If files cannot be saved: stop without them"),
  },
  examples: [
    ["Over the weekend", "berth stop"],
    ["All of yours in this repository", "berth stop --all"],
  ],
  async run(context, { args: { sandboxes }, options: { all, force, discardFiles, ...which } }) {
    const { id, config } = parseSandboxOptions(which);
    const given = id === undefined ? sandboxes : [id, ...sandboxes];
    const ids = await resolveIds(context, given, config, all);
    const stopped = [];
    for (const id of ids) {
      context.progress.show(`Saving ${id}`);
      stopped.push(await context.berth.sandbox(id).stop({ force, discardFiles }));
    }
    context.progress.end();
    const lines = stopped.map(({ id, state }) => `Sandbox ${id} is ${state}; its files stay.`);
    if (lines.length === 0) lines.push("There is no sandbox to stop.");
    context.output.printResult({ sandboxes: stopped }, ...lines);
  },
});

async function resolveIds(
  context: Context,
  given: string[],
  config: string | undefined,
  all: boolean,
): Promise<string[]> {
  if (given.length > 0) {
    if (!all && config === undefined) return given.map((id) => checkSandboxId(id, "stop"));
    throw new Failure("Ids cannot be combined with `--all` or `--config`.", { code: "bad_usage" });
  }
  context.progress.show("Asking the server");
  if (!all) return [(await findExistingSandbox(context, { id: undefined, config })).id];
  const { repo, root } = readCheckout(context.cwd, true);
  const person = readPerson(root, context.env);
  const query = { scope: { repo }, mine: true, state: "running" } as const;
  const mine = await listAll(context.berth, query);
  return mine.filter(({ client }) => (client?.user ?? person) === person).map(({ id }) => id);
}
