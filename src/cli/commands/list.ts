/** `berth list`: the sandboxes of the repository, or of this key. */
import { stateNames } from "../../protocol/fields/forms.ts";
import { badOption, choice, flag, repeatable, text } from "../args/option.ts";
import { findCheckout } from "../checkout/checkout.ts";
import { readConfig } from "../checkout/config.ts";
import { command } from "../command.ts";
import { resolveOwner } from "../find-sandbox.ts";
import { gatherSandboxes, type SandboxRow } from "../gather-sandboxes.ts";
import { formatAge } from "../output/format.ts";
import type { Column } from "../output/table.ts";
import { type KnownSandbox, LocalState } from "../state/local-state.ts";

export const listCommand = command({
  name: "list",
  summary: "List the sandboxes of this repository",
  about:
    "Outside of a checkout, or with `--all`, it lists those of every repository. `*` marks the checkout's own.",
  options: {
    all: flag("-a, --all", "List those of every repository"),
    state: choice("--state <state>", "Only in this state", stateNames),
    branch: text("--branch <branch>", "Only of this branch"),
    metadata: repeatable("--metadata <key=value>", "Only with this metadata; can be repeated"),
    mine: flag("--mine", "Only those created with this key"),
  },
  examples: [
    ["Those of this repository", "berth list"],
    ["All that are running", "berth list --all --state running"],
    ["Their ids", "berth list --json | jq -r '.sandboxes[].id'"],
  ],
  async run(context, { options }) {
    const unpaired = options.metadata.find((pair) => !/^[^=]+=/.test(pair));
    if (unpaired !== undefined) {
      throw badOption("--metadata", `must be key=value, not '${unpaired}'`);
    }
    const { output, berth } = context;
    const checkout = findCheckout(context.cwd);
    const state = checkout === undefined ? undefined : new LocalState(checkout, output);
    const isAll = options.all || checkout === undefined;
    context.progress.show("Asking the server");
    const { url } = context.server;
    const config = checkout && (await readConfig(checkout.root, context.cwd, undefined));
    const owner = checkout && config && resolveOwner(context, checkout, config);
    const { rows, foreign } = await gatherSandboxes(berth, url, state, {
      ...options,
      repo: isAll ? undefined : checkout.repo,
      here: checkout && {
        repo: checkout.repo,
        branch: checkout.branchKey,
        config: config?.scope ?? "",
        ...(owner !== undefined && { owner }),
      },
    });
    context.progress.end();
    if (foreign.length > 0) output.info(formatForeign(foreign));
    if (context.json) return void output.printJson({ sandboxes: rows.map(toJson) });
    if (rows.length === 0) return void output.info("No sandboxes.");
    const columns = isAll ? [...rowColumns, repoColumn] : rowColumns;
    output.printTable(columns, rows);
  },
});

const rowColumns: Column<SandboxRow>[] = [
  { name: "SANDBOX", cell: ({ id, here }) => (here ? `${id} *` : id) },
  { name: "STATE", cell: formatState },
  { name: "BRANCH", cell: ({ branch }) => formatBranch(branch), shrinks: true },
  { name: "CONFIG", cell: ({ configFile }) => configFile ?? "-", shrinks: true },
  { name: "MADE BY", cell: ({ listed }) => formatMaker(listed), shrinks: true },
  { name: "AGE", cell: ({ createdAt }) => formatAge(createdAt) },
  { name: "FOLDER", cell: ({ listed }) => listed?.client?.cwd ?? "-", shrinks: true },
];

/** The person if the command made it, else the key. */
function formatMaker(listed: SandboxRow["listed"]): string {
  const { client, scope, madeBy } = listed ?? {};
  return client?.user ?? scope?.owner ?? madeBy ?? "-";
}

const repoColumn: Column<SandboxRow> = {
  name: "REPO",
  cell: ({ repo }) => repo ?? "-",
  shrinks: true,
};

/** Only the container is lost: the next command starts the sandbox again. */
function formatState({ state, listed }: SandboxRow): string {
  return state === "failed" && listed?.restartable === true ? "lost" : state;
}

function formatForeign(foreign: KnownSandbox[]): string {
  const servers = [...new Set(foreign.flatMap(({ server }) => server ?? []))];
  const from = servers.length === 0 ? "" : ` (${servers.join(", ")})`;
  const what = foreign.length === 1 ? "1 sandbox" : `${foreign.length} sandboxes`;
  return `Not shown: ${what} of another server or tenant${from}, known from \`.berth/state.json\`.`;
}

function formatBranch(branch: string | undefined): string {
  return branch?.replace(/^(detached@[0-9a-f]{10})[0-9a-f]+$/, "$1") ?? "-";
}

function toJson({ here, listed, ...row }: SandboxRow): Record<string, unknown> {
  return { ...row, here, sandbox: listed };
}
