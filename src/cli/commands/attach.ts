/** `berth attach`: shows a terminal of the sandbox in the user's own one. See attach/session.ts for what happens there. */
import type { Sandbox as SandboxHandle } from "../../client/index.ts";
import { asBerthError } from "../../protocol/error-codes.ts";
import { limits } from "../../protocol/limits.ts";
import { optional } from "../args/option.ts";
import { parseSandboxOptions, sandboxOptions } from "../args/sandbox-options.ts";
import { LocalTerminal, type Size } from "../attach/local-terminal.ts";
import { detachWords, runSession } from "../attach/session.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { nextExecWords } from "../run/report-kept.ts";
import { sendCheckout, withLease } from "../run/run.ts";
import { toExitCode } from "../run/run-process.ts";
import { loadWebSocket } from "../server/web-socket.ts";

export const attachCommand = command({
  name: "attach",
  summary: "Open a terminal in the sandbox",
  about: `${detachWords} detaches: the terminal continues, and \`berth attach\` comes back to it. Several people may share one. It does not take the lease: what you do in it may overlap with commands. A new sandbox gets this checkout first. ${nextExecWords}`,
  args: { terminal: optional("terminal", "Id of the terminal (default: `main`)") },
  options: sandboxOptions,
  examples: [
    ["A shell in this checkout's sandbox", "berth attach"],
    ["A second terminal", "berth attach build"],
  ],
  ownSignals: true,
  async run(context, { args, options }) {
    requireTerminal(context);
    const { progress, output, interrupts } = context;
    const signal = interrupts.requested;
    const terminal = args.terminal ?? "main";
    using local = new LocalTerminal(context);
    const found = await findSandbox(context, parseSandboxOptions(options));
    const { sandbox } = found;
    if (found.made) {
      await withLease(context, sandbox, undefined, (lease) => sendCheckout(context, found, lease));
    }
    const isNew = await openTerminal(context, sandbox, terminal, local.size);
    progress.end();
    // A new terminal shows all its output; an existing one the current screen.
    await loadWebSocket();
    const live = await sandbox
      .terminal(terminal)
      .attach({ signal, ...(isNew ? { after: 0 } : {}) });
    output.info(`Terminal ${terminal} of sandbox ${sandbox.id}; ${detachWords} detaches.`);
    const end = await runSession(live, local, { signal, detaches: true });
    if (end.by === "aborted") throw end.reason;
    if (found.checkout !== undefined) output.info("", nextExecWords);
    if (end.by === "exit") return toExitCode({ ...end, timedOut: false });
    const reattach = terminal === "main" ? "berth attach" : `berth attach ${terminal}`;
    output.info(`Detached; terminal ${terminal} continues. Come back with \`${reattach}\`.`);
    return 0;
  },
});

function requireTerminal({ stdin, stdout, json }: Context): void {
  if (stdin.isTTY === true && stdout.isTTY === true && !json) return;
  throw new Failure("`berth attach` needs a terminal for input and output, and no `--json`.", {
    hint: "Use `berth exec` in a pipe.",
    code: "bad_usage",
  });
}

const totalWaitMs = 60 * 60_000;

/** Creates the terminal once nobody else holds the lease, unless it exists. Returns whether it is new. */
async function openTerminal(
  context: Context,
  sandbox: SandboxHandle,
  terminal: string,
  size: Size,
): Promise<boolean> {
  const signal = context.interrupts.requested;
  if (await exists(sandbox, terminal, signal)) return false;
  const until = performance.now() + totalWaitMs;
  for (;;) {
    try {
      const options = { waitMs: limits.waitMaxMs, signal };
      await sandbox.terminals.create({ id: terminal, ...size }, options);
      return true;
    } catch (thrown) {
      const known = asBerthError(thrown);
      const isHeld = known?.code === "lease_wait_timeout" || known?.code === "lease_held";
      if (!isHeld || performance.now() > until) throw thrown;
      const holder = known.facts.holder ?? "the current holder";
      context.progress.show(`Waiting for ${holder} to finish before creating terminal ${terminal}`);
    }
  }
}

async function exists(
  sandbox: SandboxHandle,
  terminal: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await sandbox.terminal(terminal).get({ signal });
    return true;
  } catch (thrown) {
    const code = asBerthError(thrown)?.code;
    if (code === "not_found" || code === "not_running" || code === "stale_handle") return false;
    throw thrown;
  }
}
