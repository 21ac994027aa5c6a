/** Parses the arguments with commander, runs the command and returns the exit code. */
import * as commander from "commander";
import manifest from "../../package.json" with { type: "json" };
import { flag, type Option } from "./args/option.ts";
import type { Command } from "./command.ts";
import { commandNames, loadCommands } from "./commands.ts";
import { Context, type HostProcess } from "./context.ts";
import { Failure, reportFailure, reportInterrupt, usageHint } from "./failure.ts";

type Invocation = {
  json: boolean;
  command: Command;
  run(context: Context): Promise<number | undefined>;
  /** `berth plan add`. */
  commandName: string;
};

/** What people type who come from other tools. */
const aliases: Record<string, string> = {
  ls: "list",
  shell: "attach",
  info: "status",
  "-V": "-v",
};

export async function runProgram(given: string[], host: HostProcess): Promise<number> {
  const argv = given.map((word, index) => (index === 0 ? (aliases[word] ?? word) : word));
  // Failures of parsing are printed as JSON too.
  let context = new Context(host, hasJsonFlag(argv));
  const parsed: { invocation?: Invocation } = {};
  const choose = (invocation: Invocation) => {
    parsed.invocation = invocation;
  };
  const name = argv[0] === "help" ? argv[1] : argv[0];
  const program = makeProgram(await loadCommands(name), choose);
  // Its commands list those of the program, so it is needed only where all of them are.
  if (!commandNames.includes(name ?? "")) await addCompletion(program, host);
  try {
    await program.parseAsync(normaliseArgs(argv, program), { from: "user" });
    const { invocation } = parsed;
    if (invocation === undefined) return 0;
    // `--json` may belong to the command that is run.
    context = new Context(host, invocation.json);
    // With `--json`, lost messages on stderr do not end the command.
    if (invocation.json) host.stderr.on("error", () => {});
    return await runInvocation(invocation, context);
  } catch (thrown) {
    const commandName = parsed.invocation?.commandName ?? commandNameIn(argv, program);
    return reportFailure(thrown, context.output, commandName);
  }
}

async function runInvocation({ command, run }: Invocation, context: Context): Promise<number> {
  const { interrupts, progress, output } = context;
  using _listening = interrupts.listen();
  if (command.ownSignals !== true) {
    // A command that holds no lease may end at any point, once the progress line is removed.
    interrupts.requested.addEventListener("abort", () => {
      progress.end();
      process.exit(reportInterrupt(interrupts.requested.reason, output));
    });
  }
  try {
    return (await run(context)) ?? 0;
  } catch (thrown) {
    throw interrupts.explain(thrown);
  } finally {
    progress.end();
  }
}

/** `berth` and `berth help exec` print help, as in other programs. An unknown command has none. */
function normaliseArgs(argv: string[], program: commander.Command): string[] {
  const [first, ...rest] = argv;
  if (first === undefined) return ["--help"];
  const args = first === "help" ? [...rest, "--help"] : argv;
  const [name = ""] = args;
  const isKnown =
    name.startsWith("-") || program.commands.some((command) => command.name() === name);
  return isKnown ? args : [name];
}

function hasJsonFlag(argv: string[]): boolean {
  const end = argv.indexOf("--");
  return (end < 0 ? argv : argv.slice(0, end)).includes("--json");
}

function makeProgram(
  commands: Command[],
  choose: (invocation: Invocation) => void,
): commander.Command {
  const program = new commander.Command("berth");
  program
    .exitOverride()
    .configureOutput({ writeErr: () => {}, outputError: () => {} })
    .enablePositionalOptions()
    .helpCommand(false)
    .version(manifest.version, "-v, --version")
    .configureHelp({ formatHelp });
  for (const command of commands) program.addCommand(declare(program, command, "berth", choose));
  return program;
}

async function addCompletion(program: commander.Command, host: HostProcess): Promise<void> {
  const { default: tab } = await import("@bomb.sh/tab/commander");
  tab(program, { completionCommandName: "completion" });
  const completion = program.commands.find((command) => command.name() === "completion");
  completion
    ?.helpGroup("Server")
    .summary("Print the completion script of a shell")
    .description("Print the completion script of a shell.")
    .helpOption("-h, --help", "Show this help")
    .addHelpText("after", completionExamples)
    .hook("postAction", (_command, { args: [shell] }) => {
      if (shell === "bash") host.stdout.write(bashFileNames);
    });
}

/** The library's script offers no file names, and fails without the package bash-completion. */
const bashFileNames = `
declare -F _get_comp_words_by_ref >/dev/null || _get_comp_words_by_ref() {
    words=("\${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=\${words[cword]}; prev=\${words[cword - 1]}
}
__berth_complete_or_file() {
    __berth_complete "$@"
    if [[ \${#COMPREPLY[@]} -gt 0 ]]; then return; fi
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}")
}
complete -F __berth_complete_or_file berth
`;

const completionExamples = [
  "",
  "Examples:",
  "  # bash",
  "  berth completion bash > ~/.local/share/bash-completion/completions/berth",
  "  # zsh, with ~/.zfunc in fpath",
  "  berth completion zsh > ~/.zfunc/_berth",
  "  # fish",
  "  berth completion fish > ~/.config/fish/completions/berth.fish",
].join("\n");

function formatHelp(command: commander.Command, help: commander.Help): string {
  if (command.parent === null) return formatOverview(command);
  return commander.Help.prototype.formatHelp.call(help, command, help);
}

function declare(
  parent: commander.Command,
  command: Command,
  before: string,
  choose: (invocation: Invocation) => void,
): commander.Command {
  const words = `${before} ${command.name}`;
  const made = new commander.Command(command.name).copyInheritedSettings(parent);
  // Shells show the description in completions; the command's own help shows all of it.
  const { summary, about } = command;
  made
    .summary(summary)
    .description(`${summary}.`)
    .helpGroup(command.group ?? "");
  made.configureHelp({
    commandDescription: () => (about === undefined ? `${summary}.` : `${summary}. ${about}`),
  });
  made.helpOption("-h, --help", "Show this help");
  for (const { form, about } of Object.values(command.args ?? {})) made.argument(form, about);
  const json = flag("--json", command.json ?? "Print exactly one JSON document on stdout");
  const options = Object.entries({ ...command.options, json }).map(
    ([key, { initial, ...form }]) => {
      const option = toCommanderOption({ initial, ...form });
      made.addOption(option);
      return { key, name: option.attributeName(), initial };
    },
  );
  if (command.passThrough === true) made.passThroughOptions();
  // Commander would reject excess arguments of a command that also runs alone, before this code can name the unknown
  // subcommand.
  const hasSubcommands = command.commands !== undefined && command.args === undefined;
  if (hasSubcommands) made.allowExcessArguments();
  for (const below of command.commands ?? []) made.addCommand(declare(made, below, words, choose));
  made.addHelpText("after", formatExamples(command));
  made.action((...given) => {
    const [unknown] = hasSubcommands ? made.args : [];
    if (unknown !== undefined) throw unknownCommand(command.name, unknown);
    const values = made.opts();
    const names = Object.keys(command.args ?? {});
    const args = Object.fromEntries(names.map((name, index) => [name, given[index]]));
    const read = options.map(({ key, name, initial }) => [key, values[name] ?? initial]);
    const call = { args, options: Object.fromEntries(read) };
    const run = (context: Context) => command.run(context, call);
    choose({ command, commandName: words, json: values.json === true, run });
  });
  return made;
}

function unknownCommand(family: string, name: string): Failure {
  return new Failure(`Unknown command '${family} ${name}'.`, {
    hint: usageHint(`berth ${family}`),
    code: "bad_usage",
  });
}

function toCommanderOption(declared: Option<unknown>): commander.Option {
  const { flags, about, initial, choices, read } = declared;
  const option = new commander.Option(flags, about);
  // For help and completion; our own reader validates the value.
  if (choices !== undefined) option.choices(choices);
  if (read !== undefined) option.argParser((text, before) => read(text, before ?? initial));
  return option;
}

function formatExamples({ examples }: Command): string {
  const lines = examples.map(([what, line]) => `  # ${what}\n  ${line}`);
  return ["", "Examples:", ...lines].join("\n");
}

/** The longest prefix of the arguments that names a command. */
function commandNameIn(argv: string[], program: commander.Command): string {
  const words = ["berth"];
  let current: commander.Command | undefined = program;
  for (const word of argv) {
    current = current.commands.find((command) => command.name() === word);
    if (current === undefined) break;
    words.push(word);
  }
  return words.join(" ");
}

const nameColumns = 12;

/** `berth --help`: all commands on one screen of 30 lines. */
function formatOverview(program: commander.Command): string {
  const visible = program.commands.filter((command) => !command.name().startsWith("complete"));
  const lineOf = (name: string, text: string) => `  ${name.padEnd(nameColumns)}${text}`;
  const namesIn = (group: string) =>
    visible.filter((command) => command.helpGroup() === group).map((command) => command.name());
  return [
    "Usage: berth <command> [options]        Help: berth <command> --help",
    ...visible
      .filter((command) => command.helpGroup() === "")
      .map((command) => lineOf(command.name(), command.summary())),
    "More:",
    lineOf("Sandbox", namesIn("Sandbox").join(", ")),
    lineOf("Server", namesIn("Server").join(", ")),
    "Server: set by `berth login`, by BERTH_URL and BERTH_KEY, or started here.",
    "",
  ].join("\n");
}
