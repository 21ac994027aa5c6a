/** `berth fork`: starts sandboxes with the files of this one. Each is named as soon as it exists. */
import type { Sandbox as SandboxHandle } from "../../client/index.ts";
import type { Sandbox } from "../../protocol/sandbox.ts";
import { text, waitOption, wholeNumber } from "../args/option.ts";
import { sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { findExistingSandbox } from "../find-sandbox.ts";
import { acquireLease } from "../lock/acquire-lease.ts";
import { findCheckpoint } from "./checkpoint.ts";

const countMax = 50;

export const forkCommand = command({
  name: "fork",
  summary: "Start other sandboxes with the files of this one",
  group: "Sandbox",
  about:
    "Without `--from` it saves the files first, as `berth checkpoint`. Forks belong to no checkout: use them with `--id`, end them with `berth rm <id>`. Prints their ids.",
  options: {
    ...sandboxOptions,
    from: text("--from <checkpoint>", "Start with this checkpoint, by name or id"),
    count: wholeNumber("-n, --count <count>", "How many (default: 1)", { min: 1, max: countMax }),
    waitMs: waitOption,
  },
  examples: [
    ["One that may be broken", "berth fork"],
    ["Three from a checkpoint", "berth fork --from before-upgrade --count 3"],
  ],
  ownSignals: true,
  async run(context, { options: { from, count = 1, waitMs, ...which } }) {
    const { berth, interrupts, output, progress } = context;
    const { sandbox, id } = await findExistingSandbox(context, which);
    const checkpoint =
      from === undefined
        ? await saveFiles(context, sandbox, waitMs)
        : (await findCheckpoint(sandbox, from)).id;
    const forks: Sandbox[] = [];
    try {
      while (forks.length < count) {
        interrupts.requested.throwIfAborted();
        progress.show(`Starting ${forks.length + 1} of ${count}`);
        // Not cancelled half-way: a fork that exists is named.
        const { info: fork } = await berth.create({ from: checkpoint, waitMs: 0 });
        forks.push(fork);
        output.print(fork.id);
      }
    } catch (thrown) {
      progress.end();
      const ids = forks.map((fork) => fork.id).join(" ");
      if (ids !== "") output.info(`These forks stay: end them with \`berth rm ${ids}\`.`);
      throw thrown;
    } finally {
      progress.end();
      // Forks keep what they need of it.
      if (from === undefined && forks.length === count) {
        await sandbox.checkpoints.delete(checkpoint).catch(() => {});
      }
    }
    if (context.json) output.printJson({ sandbox: id, checkpoint, forks });
    return 0;
  },
});

async function saveFiles(
  context: Context,
  sandbox: SandboxHandle,
  waitMs: number | undefined,
): Promise<string> {
  await using lease = await acquireLease(context, sandbox, waitMs);
  context.progress.show(`Saving the files of ${sandbox.id}`);
  const { id } = await sandbox.checkpoints.create("fork", { lease: lease.token });
  return id;
}
