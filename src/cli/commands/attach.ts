/**
 * Owns `berth attach`: a terminal of the sandbox on the person's own one.
 * Does not own the time at it (attach/session.ts).
 */
import { optional } from "../args/positional.ts";
import { readSandbox, sandboxOptions } from "../args/sandbox.ts";
import { LocalTerminal } from "../attach/local-terminal.ts";
import { openTerminal } from "../attach/open-terminal.ts";
import { detachWords, type SessionEnd, session } from "../attach/session.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { Interrupts } from "../live/interrupts.ts";
import { codeOfInterrupt } from "../run/run.ts";
import { shellCode } from "../run/run-process.ts";

export const attachCommand = command({
  name: "attach",
  summary: "open a terminal in the sandbox",
  about: `The terminal goes on when you leave it by ${detachWords}, and is there when you come back; several people may look at one. It works beside the lease: what you do in it is not kept apart from commands.`,
  args: { terminal: optional("terminal", "which one; `main` unless given") },
  options: {
    ...sandboxOptions,
  },
  examples: [
    ["A shell in this checkout's sandbox", "berth attach"],
    ["A second one", "berth attach build"],
  ],
  ownSignals: true,
  async run(context, { args, options }) {
    demandTerminal(context);
    using interrupts = new Interrupts();
    const terminal = args.terminal ?? "main";
    const local = new LocalTerminal(context);
    try {
      const signal = interrupts.asked;
      const { sandbox } = await findSandbox(context, { ...readSandbox(options), signal });
      const { made } = await openTerminal(context, sandbox, terminal, local.size, signal);
      context.progress.end();
      const live = await sandbox.attachTerminal(terminal, {
        signal,
        // Of a new one all that it ever wrote, below our own line; else a picture of its screen.
        ...(made ? { after: 0 } : {}),
      });
      context.output.say(`terminal ${terminal} of ${sandbox.id}; ${detachWords} leaves it`);
      const end = await session(live, local, { signal, detaches: true });
      return told(context, terminal, end);
    } catch (thrown) {
      return codeOfInterrupt(context, thrown, interrupts);
    } finally {
      local.restore();
    }
  },
});

function told({ output }: Context, terminal: string, end: SessionEnd): number {
  switch (end.by) {
    case "detached":
      output.say(
        `\nleft terminal ${terminal}; it goes on: \`berth attach${named(terminal)}\` comes back`,
      );
      return 0;
    case "aborted":
      throw end.reason;
    case "exit":
      return shellCode({ ...end, timedOut: false });
  }
}

function named(terminal: string): string {
  return terminal === "main" ? "" : ` ${terminal}`;
}

function demandTerminal({ stdin, stdout, json }: Context): void {
  if (stdin.isTTY === true && stdout.isTTY === true && !json) return;
  throw new Failure("attach needs a terminal on both ends, and no --json", {
    hint: "In a pipe, use `berth exec`.",
    code: "bad_usage",
  });
}
