/**
 * Owns what `berth --help` says: all commands on one screen of 24 lines.
 */
import type { Command } from "commander";

const nameColumns = 12;

export function overview(program: Command): string {
  const commands = program.commands.filter((one) => !one.name().startsWith("complete"));
  const lines = commands.map((one) => `  ${one.name().padEnd(nameColumns)}${one.summary()}`);
  return [
    "usage: berth <command> [options]        berth <command> --help says more",
    ...lines,
    "The server: `berth login`, or BERTH_URL and BERTH_KEY, or one started here.",
    "",
  ].join("\n");
}
