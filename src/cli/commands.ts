/**
 * Owns which commands there are, in the order of `berth --help`.
 */
import type { Command } from "./command.ts";
import { listCommand } from "./commands/list.ts";
import { loginCommand } from "./commands/login.ts";
import { versionCommand } from "./commands/version.ts";

export const commands: Command[] = [listCommand, loginCommand, versionCommand];
