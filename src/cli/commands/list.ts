/**
 * Owns `berth list`: the sandboxes of the repository, or of everybody with this key, as the server knows them.
 * Does not own what is remembered here (memory/): it is looked through only for what the server does not name.
 */

import { stateNames } from "../../protocol/sandbox.ts";
import { badOption, choice, flag, several, text } from "../args/option.ts";
import { findCheckout } from "../checkout/checkout.ts";
import { readConfig } from "../checkout/config.ts";
import { command } from "../command.ts";
import { gather, type Row } from "../gather-sandboxes.ts";
import { age } from "../output/age.ts";
import { type Column, table } from "../output/table.ts";
import { Memory } from "../state/memory.ts";

export const listCommand = command({
  name: "list",
  summary: "list the sandboxes of this repository",
  about:
    "Outside of a checkout, or with --all, those of every repository. `*` marks the checkout's own.",
  options: {
    all: flag("-a, --all", "of every repository"),
    state: choice("--state <state>", "only those", stateNames),
    branch: text("--branch <branch>", "only of this branch"),
    metadata: several("--metadata <key=value>", "only with this; may be repeated"),
    mine: flag("--mine", "only those made with my key"),
  },
  examples: [
    ["Those of this repository", "berth list"],
    ["What runs at all", "berth list --all --state running"],
    ["Their ids", "berth list --json | jq -r '.sandboxes[].id'"],
  ],
  async run(context, { options }) {
    const unpaired = options.metadata.find((one) => !/^[^=]+=/.test(one));
    if (unpaired !== undefined) {
      throw badOption("--metadata", `must be key=value, not '${unpaired}'`);
    }
    const { output, berth } = context;
    const checkout = findCheckout(context.cwd);
    const memory = checkout === undefined ? undefined : new Memory(checkout, output);
    const isWhole = options.all || checkout === undefined;
    context.progress.tell("asking the server");
    const rows = await gather(berth, memory, {
      repo: isWhole ? undefined : checkout.repo,
      branch: options.branch,
      state: options.state,
      metadata: options.metadata,
      mine: options.mine,
      here: checkout && {
        repo: checkout.repo,
        branch: checkout.branchKey,
        config: readConfig(checkout.root, context.cwd, undefined).scope,
      },
    });
    context.progress.end();
    if (context.json) return void output.document({ sandboxes: rows.map(asJson) });
    if (rows.length === 0) return void output.say("no sandboxes");
    const columns = isWhole ? [...rowColumns, repoColumn] : rowColumns;
    for (const line of table(columns, rows, context.stdout.columns)) output.line(line);
  },
});

const rowColumns: Column<Row>[] = [
  { name: "SANDBOX", cell: ({ id, here }) => (here ? `${id} *` : id) },
  { name: "STATE", cell: shownState },
  { name: "BRANCH", cell: ({ branch }) => shortBranch(branch), shrinks: true },
  { name: "CONFIG", cell: ({ configFile }) => configFile ?? "-", shrinks: true },
  { name: "AGE", cell: ({ createdAt }) => age(createdAt) },
];

const repoColumn: Column<Row> = { name: "REPO", cell: ({ repo }) => repo ?? "-", shrinks: true };

/** One whose container is gone is well but for that: the next command starts it again. */
function shownState({ state, listed }: Row): string {
  return state === "failed" && listed?.restartable === true ? "lost" : state;
}

function shortBranch(branch: string | undefined): string {
  return branch?.replace(/^(detached@[0-9a-f]{10})[0-9a-f]+$/, "$1") ?? "-";
}

function asJson({ here, listed, ...row }: Row): Record<string, unknown> {
  return { ...row, here, ...(listed === undefined ? {} : { sandbox: listed }) };
}
