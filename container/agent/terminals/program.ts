/**
 * Owns what is started in a terminal: which program, in which folder, with what environment, and as its master.
 * Does not own the terminal. What can be known not to run is refused before there is one.
 */
import type { AgentTerminalCall } from "../../../src/protocol/internal/agent.ts";
import { findProgram, refusal } from "../exec/program.ts";
import { environmentOf, folderOf, type Place } from "../exec/sandbox-env.ts";
import { refuse } from "../server/fields.ts";
import type { Launch } from "../supervision/process-tree.ts";
import { scriptProblem } from "./script.ts";

/** It makes a session with the terminal as its controlling one, and becomes the program: the pid stays. */
const setsid = "/usr/bin/setsid";

export type Program = Omit<Launch, "stdin" | "stdout" | "stderr"> & { asked: string[] };

/** Throws bad_cwd, or bad_request for a program that does not run. */
export function programOf(call: AgentTerminalCall, place: Place): Program {
  const cwd = folderOf(place, call.cwd);
  const colours = { TERM: "xterm-256color", COLORTERM: "truecolor" };
  const env = environmentOf(place, { ...colours, ...place.env, ...call.env });
  const around = { cwd, env, user: place.user };
  const asked = call.argv ?? loginShell(around);
  const found = findProgram(asked[0] ?? "", around);
  if (typeof found !== "string") refuseProgram(found.line);
  const problem = scriptProblem(found, place.user);
  if (problem !== undefined) refuseProgram(refusal(problem.file, problem.code).line);
  return { program: setsid, argv: ["setsid", "-c", "--", ...asked], ...around, asked };
}

function loginShell(around: { cwd: string; env: Record<string, string>; user: Place["user"] }) {
  return [typeof findProgram("bash", around) === "string" ? "bash" : "sh", "-l"];
}

function refuseProgram(line: string): never {
  refuse("argv", `names a program that cannot run: ${line.trimEnd()}; no terminal was made`);
}
