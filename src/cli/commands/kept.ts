/** `berth kept`: the work that a sync kept before it replaced it in the sandbox. It is stored in `.git/berth`. */
import { required } from "../args/option.ts";
import { readCheckout } from "../checkout/checkout.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { formatAge } from "../output/format.ts";
import type { Column } from "../output/table.ts";
import { formatPaths, printPulled } from "../run/report.ts";
import { diffTrees } from "../sync/fetch-changes.ts";
import { dropKept, findKept, listKept, type SavedWork } from "../sync/kept-work.ts";
import { acceptChanges } from "../sync/pull.ts";
import { openRepository, type Repository } from "../sync/repository.ts";

const number = required("number", "Number, as shown by `berth kept`");

const showCommand = command({
  name: "show",
  summary: "Print the difference, and the commits of the sandbox",
  args: { number },
  examples: [["What the last sync has kept", "berth kept show 3"]],
  async run(context, { args }) {
    const { repository, kept } = await openKept(context, args.number);
    const { commit, commits } = kept;
    if (context.json) return void context.output.printJson({ kept });
    const colour = context.stdout.isTTY === true && !context.output.isPlain ? "always" : "never";
    const print = { onOutput: (chunk: Buffer) => void context.stdout.write(chunk) };
    const common = [`--color=${colour}`, "--no-ext-diff", "--no-textconv"];
    if (commits > 0) {
      const format = "--format=commit %H%nAuthor: %an <%ae>%n%n%w(0,4,4)%B";
      const range = [`--max-count=${commits}`, `${commit}^@`, `^${commit}^1`];
      await repository.raw.run(["log", `--color=${colour}`, format, ...range], print);
    }
    await repository.raw.run(["diff", ...common, `${commit}^1`, commit], print);
  },
});

const restoreCommand = command({
  name: "restore",
  summary: "Apply it to this checkout",
  about:
    "As files come back from a command: one that changed here meanwhile stays, and the kept version is saved next to it.",
  args: { number },
  examples: [["Bring it back", "berth kept restore 3"]],
  async run(context, { args }) {
    const { repository, kept } = await openKept(context, args.number);
    const changes = await diffTrees(repository, `${kept.commit}^1`, kept.commit);
    const applied = await acceptChanges(repository, changes, context.interrupts.requested);
    const { conflicts, refused } = applied;
    const isComplete = conflicts.length + applied.kept.length + refused.length === 0;
    const pull = { ...applied, receivedBytes: 0 };
    if (context.json) context.output.printJson({ kept, pull });
    else printPulled(context.output, "", { status: isComplete ? "done" : "conflict", ...pull });
    return isComplete ? 0 : 1;
  },
});

const dropCommand = command({
  name: "drop",
  summary: "Forget it",
  args: { number },
  examples: [["It is not needed any more", "berth kept drop 3"]],
  async run(context, { args }) {
    const { repository, kept } = await openKept(context, args.number);
    await dropKept(repository, kept.number);
    context.output.printResult({ dropped: kept }, `Dropped ${kept.number}.`);
  },
});

export const keptCommand = command({
  name: "kept",
  summary: "List work that a sync kept, and bring it back",
  group: "Sandbox",
  about:
    "Before a sync replaces or removes a file that only the sandbox has, it fetches it here. The newest 100 stay, in `.git/berth`.",
  examples: [
    ["What there is", "berth kept"],
    ["Look at it, then bring it back", "berth kept show 3; berth kept restore 3"],
  ],
  commands: [showCommand, restoreCommand, dropCommand],
  async run(context) {
    const kept = await listKept(await openCheckout(context));
    const { output } = context;
    if (context.json) return void output.printJson({ kept });
    if (kept.length === 0) return void output.info("Nothing is kept.");
    output.printTable(columns, kept);
  },
});

const columns: Column<SavedWork>[] = [
  { name: "NUMBER", cell: ({ number }) => String(number) },
  { name: "AGE", cell: ({ createdAt }) => formatAge(createdAt) },
  { name: "COMMITS", cell: ({ commits }) => String(commits) },
  { name: "FILES", cell: ({ paths }) => formatPaths(paths), shrinks: true },
];

async function openCheckout(context: Context): Promise<Repository> {
  const { folder } = readCheckout(context.cwd, false);
  return await openRepository(folder, context.interrupts.requested);
}

async function openKept(
  context: Context,
  given: string,
): Promise<{ repository: Repository; kept: SavedWork }> {
  const repository = await openCheckout(context);
  const kept = /^\d{1,9}$/.test(given) ? await findKept(repository, Number(given)) : undefined;
  if (kept !== undefined) return { repository, kept };
  throw new Failure(`Nothing is kept under the number '${given}'.`, {
    hint: "Run `berth kept` to see the numbers.",
    code: "no_kept_work",
  });
}
