/** `berth checkpoint`: saves the files of a sandbox, lists what was saved, and brings it back. */
import type { Sandbox as SandboxHandle } from "../../client/index.ts";
import { type Checkpoint, checkpointIdPattern } from "../../protocol/checkpoint.ts";
import { optional, required, waitOption } from "../args/option.ts";
import { sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import { Failure } from "../failure.ts";
import { findExistingSandbox } from "../find-sandbox.ts";
import { acquireLease } from "../lock/acquire-lease.ts";
import { formatAge, formatSize } from "../output/format.ts";
import type { Column } from "../output/table.ts";

const listCommand = command({
  name: "list",
  summary: "List the checkpoints, newest first",
  options: sandboxOptions,
  examples: [["What can be restored", "berth checkpoint list"]],
  async run(context, { options }) {
    const { output } = context;
    const { sandbox } = await findExistingSandbox(context, options);
    const checkpoints = [...(await sandbox.checkpoints.list())];
    if (context.json) return void output.printJson({ checkpoints });
    if (checkpoints.length === 0) return void output.info("No checkpoints.");
    output.printTable(columns, checkpoints);
  },
});

const which = required("checkpoint", "Name or id, as shown by `berth checkpoint list`");

const restoreCommand = command({
  name: "restore",
  summary: "Restart the sandbox with the files of a checkpoint",
  about:
    "What runs in it ends, and files that were written later are lost. The next `berth exec` sends this checkout's files again, and keeps the restored ones first; `berth pull` brings them here.",
  args: { checkpoint: which },
  options: { ...sandboxOptions, waitMs: waitOption },
  examples: [["Go back", "berth checkpoint restore before-upgrade; berth pull"]],
  ownSignals: true,
  async run(context, { args, options }) {
    const { sandbox, id } = await findExistingSandbox(context, options);
    const found = await findCheckpoint(sandbox, args.checkpoint);
    await using lease = await acquireLease(context, sandbox, options.waitMs);
    context.progress.show(`Restoring ${found.name ?? found.id}`);
    const view = await sandbox.checkpoints.restore(found.id, { lease: lease.token });
    context.progress.end();
    const label = found.name ?? found.id;
    const text = `Sandbox ${id} has the files of ${label}. \`berth pull\` brings them here.`;
    context.output.printResult({ sandbox: view, checkpoint: found }, text);
    return 0;
  },
});

const removeCommand = command({
  name: "rm",
  summary: "Remove a checkpoint",
  args: { checkpoint: which },
  options: sandboxOptions,
  examples: [["It is not needed any more", "berth checkpoint rm before-upgrade"]],
  async run(context, { args, options }) {
    const { sandbox } = await findExistingSandbox(context, options);
    const found = await findCheckpoint(sandbox, args.checkpoint);
    const removed = await sandbox.checkpoints.delete(found.id);
    context.output.printResult({ removed }, `Checkpoint ${found.name ?? found.id} is removed.`);
  },
});

export const checkpointCommand = command({
  name: "checkpoint",
  summary: "Save the sandbox's files, list or restore them",
  group: "Sandbox",
  about: "The sandbox is frozen for a moment.",
  args: { name: optional("name", "A name for it") },
  options: { ...sandboxOptions, waitMs: waitOption },
  examples: [
    ["Before something risky", "berth checkpoint before-upgrade"],
    ["Go back", "berth checkpoint restore before-upgrade"],
  ],
  commands: [listCommand, restoreCommand, removeCommand],
  ownSignals: true,
  async run(context, { args, options }) {
    const { sandbox, id } = await findExistingSandbox(context, options);
    await using lease = await acquireLease(context, sandbox, options.waitMs);
    context.progress.show(`Saving the files of ${id}`);
    const made = await sandbox.checkpoints.create(args.name, { lease: lease.token });
    context.progress.end();
    const size = made.bytes === undefined ? "" : ` (${formatSize(made.bytes)})`;
    const label = made.name === undefined ? made.id : `${made.name}, ${made.id}`;
    context.output.printResult({ sandbox: id, checkpoint: made }, `Saved ${label}${size}.`);
    return 0;
  },
});

/** By id, or the newest of the name. */
export async function findCheckpoint(sandbox: SandboxHandle, given: string): Promise<Checkpoint> {
  if (checkpointIdPattern.test(given)) return await sandbox.checkpoints.get(given);
  const checkpoints = [...(await sandbox.checkpoints.list())];
  const found = checkpoints.find(({ name }) => name === given);
  if (found !== undefined) return found;
  throw new Failure(`The sandbox has no checkpoint \`${given}\`.`, {
    hint: "Run `berth checkpoint list` to see them.",
    code: "no_checkpoint",
  });
}

const columns: Column<Checkpoint>[] = [
  { name: "CHECKPOINT", cell: ({ id }) => id },
  { name: "NAME", cell: ({ name }) => name ?? "-", shrinks: true },
  { name: "AGE", cell: ({ createdAt }) => formatAge(createdAt) },
  { name: "SIZE", cell: ({ bytes }) => (bytes === undefined ? "-" : formatSize(bytes)) },
  { name: "IN USE BY", cell: ({ inUse }) => inUse ?? "-" },
];
