/**
 * Owns the way from arguments to a command and back to an exit code, by the library that parses them.
 * Does not own what commands do, nor the words of failures (failure.ts).
 */
import tab from "@bomb.sh/tab/commander";
import * as commander from "commander";
import manifest from "../../package.json" with { type: "json" };
import type { Option } from "./args/option.ts";
import type { Command } from "./command.ts";
import { commands } from "./commands.ts";
import { Context, type World } from "./context.ts";
import { Failure, report } from "./failure.ts";
import { interruptedDocument } from "./live/interrupts.ts";
import { overview } from "./overview.ts";

type Chosen = {
  json: boolean;
  command: Command;
  run(context: Context): Promise<number | undefined>;
  words: string;
};

const jsonOption: Option<boolean> = {
  flags: "--json",
  about: "stdout is exactly one JSON document",
  initial: false,
};

export async function runProgram(argv: string[], world: World): Promise<number> {
  // What cannot be parsed is said as JSON as well.
  let context = new Context(world, asksForJson(argv));
  const chosen: { one?: Chosen } = {};
  const program = makeProgram((one) => {
    chosen.one = one;
  });
  try {
    await program.parseAsync(asOptions(argv, program), { from: "user" });
    const { one } = chosen;
    if (one === undefined) return 0;
    // `--json` may have been meant for the command that is run.
    context = new Context(world, one.json);
    // Talk that cannot be written ends nothing where the result is a document.
    if (one.json) world.stderr.on("error", () => {});
    const letGo = one.command.ownSignals === true ? () => {} : endOnSignals(context);
    try {
      return (await one.run(context)) ?? 0;
    } finally {
      letGo();
      context.progress.end();
    }
  } catch (thrown) {
    context.progress.end();
    return report(thrown, context.output, chosen.one?.words ?? wordsOf(argv, program));
  }
}

/** `berth` and `berth help exec` ask for help as other programs have it; of no command there is none. */
function asOptions(argv: string[], program: commander.Command): string[] {
  const [first, ...rest] = argv;
  if (first === undefined) return ["--help"];
  const asked = first === "help" ? [...rest, "--help"] : argv;
  const [name = ""] = asked;
  const isKnown = name.startsWith("-") || program.commands.some((one) => one.name() === name);
  return isKnown ? asked : [name];
}

function asksForJson(argv: string[]): boolean {
  const end = argv.indexOf("--");
  return (end < 0 ? argv : argv.slice(0, end)).includes("--json");
}

function makeProgram(choose: (one: Chosen) => void): commander.Command {
  const program = new commander.Command("berth");
  program
    .exitOverride()
    .configureOutput({ writeErr: () => {}, outputError: () => {} })
    .enablePositionalOptions()
    .helpCommand(false)
    .version(manifest.version, "-V, --version")
    .configureHelp({ formatHelp: helpOf });
  for (const command of commands) program.addCommand(declare(program, command, "berth", choose));
  tab(program, { completionCommandName: "completion" });
  const completion = program.commands.find((one) => one.name() === "completion");
  completion
    ?.summary("print the completion script of a shell")
    .description("Print the completion script of a shell.")
    .helpOption("-h, --help", "say this")
    .addHelpText("after", completionExamples);
  return program;
}

const completionExamples = [
  "",
  "Examples:",
  "  # bash, with the package bash-completion",
  "  berth completion bash > ~/.local/share/bash-completion/completions/berth",
  "  # zsh, with ~/.zfunc in fpath",
  "  berth completion zsh > ~/.zfunc/_berth",
  "  # fish",
  "  berth completion fish > ~/.config/fish/completions/berth.fish",
].join("\n");

function helpOf(one: commander.Command, help: commander.Help): string {
  if (one.parent === null) return overview(one);
  return commander.Help.prototype.formatHelp.call(help, one, help);
}

function declare(
  parent: commander.Command,
  one: Command,
  before: string,
  choose: (one: Chosen) => void,
): commander.Command {
  const words = `${before} ${one.name}`;
  const made = new commander.Command(one.name).copyInheritedSettings(parent);
  // Completion shows the first sentence beside the name; help shows all of it.
  made.summary(one.summary).description(sentence(one));
  made.configureHelp({ commandDescription: () => describe(one) });
  made.helpOption("-h, --help", "say this");
  for (const { form, about, choices } of Object.values(one.args ?? {})) {
    const argument = new commander.Argument(form, about);
    made.addArgument(choices === undefined ? argument : argument.choices(choices));
  }
  const json = { ...jsonOption, about: one.json ?? jsonOption.about };
  const options = Object.entries({ ...one.options, json }).map(([key, option]) => ({
    ...{ key, initial: option.initial },
    option: asOption(option),
  }));
  for (const { option } of options) made.addOption(option);
  if (one.passThrough === true) made.passThroughOptions();
  // The library would count the arguments of a command that also does something alone.
  const isFamily = one.commands !== undefined && one.args === undefined;
  if (isFamily) made.allowExcessArguments();
  for (const below of one.commands ?? []) made.addCommand(declare(made, below, words, choose));
  made.addHelpText("after", examplesOf(one));
  made.action((...given) => {
    const [unknown] = isFamily ? made.args : [];
    if (unknown !== undefined) throw unknownCommand(one.name, unknown);
    const values = made.opts();
    const names = Object.keys(one.args ?? {});
    const args = Object.fromEntries(names.map((name, at) => [name, given[at]]));
    const read = options.map(({ key, initial, option }) => [
      key,
      values[option.attributeName()] ?? initial,
    ]);
    const call = { args, options: Object.fromEntries(read) };
    choose({
      command: one,
      words,
      json: values.json === true,
      run: (context) => one.run(context, call),
    });
  });
  return made;
}

function unknownCommand(family: string, name: string): Failure {
  return new Failure(`unknown command '${family} ${name}'`, {
    hint: `berth ${family} --help says how it is called.`,
    code: "bad_usage",
  });
}

function asOption({ flags, about, initial, choices, read }: Option<unknown>): commander.Option {
  const option = new commander.Option(flags, about);
  // Shown in help and completed; our own reader refuses what is none of them.
  if (choices !== undefined) option.choices(choices);
  if (read !== undefined) option.argParser((text, before) => read(text, before ?? initial));
  return option;
}

function sentence({ summary }: Command): string {
  return `${summary[0]?.toUpperCase() ?? ""}${summary.slice(1)}.`;
}

function describe(one: Command): string {
  return one.about === undefined ? sentence(one) : `${sentence(one)} ${one.about}`;
}

function examplesOf({ examples }: Command): string {
  const lines = examples.map(([what, line]) => `  # ${what}\n  ${line}`);
  return ["", "Examples:", ...lines].join("\n");
}

/** The longest run of words that names a command: where help is to be had. */
function wordsOf(argv: string[], program: commander.Command): string {
  const words = ["berth"];
  let at: commander.Command | undefined = program;
  for (const word of argv) {
    at = at.commands.find((one) => one.name() === word);
    if (at === undefined) break;
    words.push(word);
  }
  return words.join(" ");
}

/** A command that holds nothing may end at any point; the progress line must not stay behind. */
function endOnSignals(context: Context): () => void {
  const signals = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
  const end = (signal: keyof typeof signals) => {
    context.progress.end();
    const { json, output } = context;
    if (json && !output.isTold) output.document(interruptedDocument(signal));
    process.exit(signals[signal]);
  };
  for (const signal of Object.keys(signals)) process.once(signal, end);
  return () => {
    for (const signal of Object.keys(signals)) process.off(signal, end);
  };
}
