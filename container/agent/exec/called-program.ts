/**
 * Owns what a call that names a program comes to: which file, with which arguments, where, in what environment.
 * Does not own its start. Looks with the command's own rights; throws bad_cwd.
 */

import type { Launch } from "../supervision/process-tree.ts";
import { findProgram, type Refusal } from "./program.ts";
import { environmentOf, folderOf, type Place } from "./sandbox-env.ts";

type Call = {
  command?: string | undefined;
  argv?: string[] | undefined;
  cwd?: string | undefined;
  env?: Record<string, string> | undefined;
};

export type Program = Pick<Launch, "program" | "argv" | "cwd" | "env" | "user">;

const shell = "/bin/sh";

/** A refusal where no such file can run. */
export function calledProgram(place: Place, call: Call): Program | Refusal {
  const cwd = folderOf(place, call.cwd);
  const env = environmentOf(place, call.env);
  const argv = argvOf(call);
  const { user } = place;
  const program = call.argv === undefined ? shell : findProgram(argv[0] ?? "", { cwd, env, user });
  return typeof program === "string" ? { program, argv, cwd, env, user } : program;
}

function argvOf(call: Call): string[] {
  if (call.argv !== undefined) return call.argv;
  const command = call.command ?? "";
  // A shell takes a command that begins so for an option of its own.
  return ["sh", "-c", /^[-+]/.test(command) ? ` ${command}` : command];
}
