/**
 * Makes a process ready to start: finds its program, allocates its log, and remembers its command line.
 */
import type { AgentProcessCall } from "../../../src/protocol/internal/agent.ts";
import type { StartFailure } from "../exec/program.ts";
import { resolveProgram } from "../exec/resolve-program.ts";
import { resolveCwd, type SandboxEnv } from "../exec/sandbox-env.ts";
import { resourcesUnavailable } from "../kernel/pipes.ts";
import type { CommandTextBudget } from "./command-text.ts";
import { Process, type Program } from "./process.ts";

/** With a `StartFailure` the process exits at once and says on stderr why it cannot run. */
export type PreparedProcess = { process: Process; launch: Program | StartFailure };

type PrepareDeps = {
  sandboxEnv: SandboxEnv;
  commandTexts: CommandTextBudget;
  sessionId: string | undefined;
  /** Runs instead of the call's own command, argv, cwd and env. */
  program: Omit<Program, "user"> | undefined;
};

/** Nothing has started and nothing stays allocated when this throws. */
export function prepareProcess(
  call: AgentProcessCall,
  { sandboxEnv, commandTexts, sessionId, program }: PrepareDeps,
): PreparedProcess {
  const { id, name, command, argv, cwd: _cwd, env: _env, ...options } = call;
  const { user, logs } = sandboxEnv;
  const launch = program === undefined ? resolveProgram(sandboxEnv, call) : { ...program, user };
  const cwd = "program" in launch ? launch.cwd : resolveCwd(sandboxEnv, call.cwd);
  const commandText = commandTexts.reserve({ command, argv });
  try {
    const process = new Process({
      id,
      name,
      sessionId,
      commandText,
      options,
      cwd,
      logsFolder: logs,
    });
    return { process, launch };
  } catch (error) {
    commandTexts.release(commandText);
    throw resourcesUnavailable(error);
  }
}
