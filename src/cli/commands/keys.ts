/** `berth keys`: lists, creates and removes the keys of an installation, with an administrator's key. */
import { Berth } from "../../client/index.ts";
import type { Key } from "../../protocol/key.ts";
import { badOption, required, text, wholeNumber } from "../args/option.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { formatAge } from "../output/format.ts";
import type { Column } from "../output/table.ts";
import { findAdministrator } from "../server/find-server.ts";

const dayMs = 24 * 60 * 60_000;
/** All rights that there are; their list is part of the schemas, which the command does not load. */
const rightsCount = 7;
/** The tenant of the key that the server of one machine generates. */
const localTenant = "local";

const about =
  "The administrator's key is in BERTH_ADMIN_KEY; for a server started here it is read from " +
  "$BERTH_DATA/admin-key or .berth/admin-key.";

const tenantOption = text(
  "--tenant <name>",
  `Whose sandboxes the key is for (default: ${localTenant})`,
);

const addCommand = command({
  name: "add",
  summary: "Create a key and print it",
  about: `It works at once. ${about}`,
  args: { name: required("name", "Who has the key; `berth list` shows it as the maker") },
  options: {
    tenant: tenantOption,
    rights: text("--rights <list>", "What the key may do, such as read,exec (default: everything)"),
    days: wholeNumber("--days <number>", "Days until it expires (default: never)", {
      min: 1,
      max: 3650,
    }),
  },
  examples: [
    ["For a colleague, who sees the same sandboxes", "berth keys add alice"],
    ["For another team, for 90 days", "berth keys add ci --tenant acme --days 90"],
  ],
  async run(context, { args: { name }, options: { tenant = localTenant, rights, days } }) {
    const { output } = context;
    const made = await keysOf(context).create({
      ...{ name, tenant },
      ...(rights === undefined ? {} : { rights: listOf(rights) }),
      ...(days === undefined ? {} : { ttlMs: days * dayMs }),
    });
    output.printResult(made, made.key);
    if (!context.json) output.info(`This is the key of ${name}. It is not shown again.`);
  },
});

const removeCommand = command({
  name: "remove",
  summary: "Remove a key and end what it has open",
  about: `Within seconds its streams, terminals and tokens end. ${about}`,
  args: { key: required("key", "Its name, or its id as `berth keys` shows it") },
  options: { tenant: tenantOption },
  examples: [["When somebody leaves", "berth keys remove alice"]],
  async run(context, { args, options: { tenant = localTenant } }) {
    const keys = keysOf(context);
    const found = (await keys.list()).find(
      ({ id, ...key }) => id === args.key || (key.name === args.key && key.tenant === tenant),
    );
    if (found === undefined) {
      throw new Failure(`The tenant ${tenant} has no key named ${args.key}.`, {
        hint: "Run `berth keys` to list the keys of all tenants.",
        code: "not_found",
      });
    }
    await keys.delete(found.id);
    context.output.printResult({ removed: found }, `Removed the key ${found.name} (${found.id}).`);
  },
});

export const keysCommand = command({
  name: "keys",
  summary: "List, create and remove the keys of a server",
  group: "Server",
  about: `Without a subcommand it lists them. ${about}`,
  examples: [
    ["A key for a colleague", "berth keys add alice"],
    ["End it, and all that it has open", "berth keys remove alice"],
  ],
  commands: [addCommand, removeCommand],
  async run(context) {
    const { output, json } = context;
    const keys = await keysOf(context).list();
    if (json) return void output.printJson({ keys });
    if (keys.length === 0) return void output.info("No keys but those of the server's variables.");
    output.printTable(columns, keys);
  },
});

const columns: Column<Key>[] = [
  { name: "ID", cell: ({ id }) => id },
  { name: "TENANT", cell: ({ tenant }) => tenant, shrinks: true },
  { name: "NAME", cell: ({ name }) => name, shrinks: true },
  { name: "AGE", cell: ({ createdAt }) => formatAge(createdAt) },
  {
    name: "USED",
    cell: ({ lastUsedAt }) => (lastUsedAt === undefined ? "-" : formatAge(lastUsedAt)),
  },
  { name: "EXPIRES", cell: ({ expiresAt }) => expiresAt?.slice(0, 10) ?? "-" },
  {
    name: "RIGHTS",
    cell: ({ rights }) => (rights.length === rightsCount ? "all" : rights.join(",")),
  },
];

/** The server checks their names. */
function listOf(rights: string): Key["rights"] {
  const names = rights.split(",").filter((name) => name !== "");
  if (names.length === 0) throw badOption("--rights", "must name at least one right");
  return names as Key["rights"];
}

function keysOf({ cwd, env }: Context): Berth["keys"] {
  return Berth.connect(findAdministrator(cwd, env)).keys;
}
