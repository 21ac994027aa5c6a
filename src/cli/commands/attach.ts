/**
 * `berth attach`: shows a terminal of the sandbox in the user's own one. See attach/session.ts for what happens there.
 */
import { optional } from "../args/positional.ts";
import { parseSandboxOptions, sandboxOptions } from "../args/sandbox-options.ts";
import { LocalTerminal } from "../attach/local-terminal.ts";
import { openTerminal } from "../attach/open-terminal.ts";
import { detachWords, runSession, type SessionEnd } from "../attach/session.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { Interrupts } from "../interrupts.ts";
import { interruptExitCode } from "../run/run.ts";
import { toExitCode } from "../run/run-process.ts";

export const attachCommand = command({
  name: "attach",
  summary: "Open a terminal in the sandbox",
  about: `${detachWords} detaches: the terminal continues, and \`berth attach\` comes back to it. Several people may share one. It does not take the lease: what you do in it may overlap with commands.`,
  args: { terminal: optional("terminal", "Id of the terminal (default: `main`)") },
  options: {
    ...sandboxOptions,
  },
  examples: [
    ["A shell in this checkout's sandbox", "berth attach"],
    ["A second terminal", "berth attach build"],
  ],
  ownSignals: true,
  async run(context, { args, options }) {
    requireTerminal(context);
    using interrupts = new Interrupts();
    const terminal = args.terminal ?? "main";
    const local = new LocalTerminal(context);
    try {
      const signal = interrupts.requested;
      const { sandbox } = await findSandbox(context, { ...parseSandboxOptions(options), signal });
      const { made } = await openTerminal(context, sandbox, terminal, local.size, signal);
      context.progress.end();
      const live = await sandbox.attachTerminal(terminal, {
        signal,
        // A new terminal shows all its output; an existing one the current screen.
        ...(made ? { after: 0 } : {}),
      });
      context.output.info(
        `Terminal ${terminal} of sandbox ${sandbox.id}; ${detachWords} detaches.`,
      );
      const end = await runSession(live, local, { signal, detaches: true });
      return finish(context, terminal, end);
    } catch (thrown) {
      return interruptExitCode(context, thrown, interrupts);
    } finally {
      local.restore();
    }
  },
});

function finish({ output }: Context, terminal: string, end: SessionEnd): number {
  switch (end.by) {
    case "detached":
      output.info(
        `\nDetached; terminal ${terminal} continues. Come back with \`berth attach${terminalSuffix(terminal)}\`.`,
      );
      return 0;
    case "aborted":
      throw end.reason;
    case "exit":
      return toExitCode({ ...end, timedOut: false });
  }
}

function terminalSuffix(terminal: string): string {
  return terminal === "main" ? "" : ` ${terminal}`;
}

function requireTerminal({ stdin, stdout, json }: Context): void {
  if (stdin.isTTY === true && stdout.isTTY === true && !json) return;
  throw new Failure("`berth attach` needs a terminal for input and output, and no `--json`.", {
    hint: "Use `berth exec` in a pipe.",
    code: "bad_usage",
  });
}
