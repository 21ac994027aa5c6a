/** Runs our scripts in a sandbox. Each runs once over lost connections, and ends when its caller cancels. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Sandbox as SandboxHandle } from "../../client/index.ts";
import { asBerthError } from "../../protocol/error-codes.ts";
import type { ExecInput, ExecResult } from "../../protocol/exec.ts";
import { Failure } from "../failure.ts";

/** The options of each call to the sandbox. */
export type SyncCallOptions = { lease?: string; signal?: AbortSignal };

export type SyncTarget = { sandbox: SandboxHandle; options: SyncCallOptions };

/** Enough to unpack and check out the largest repositories. */
const scriptTimeoutMs = 30 * 60_000;
const outputBytesMax = 8 * 1024 * 1024;
const noGit = 127;
/** Exit code of `packChangesScript`. */
const noRepository = 66;

/** The lease usually ends earlier: one kept by a connection is lost ten seconds after it. */
const retryForMs = 60_000;
const retryDelayMs = 500;
const endTimeoutMs = 2_000;
const runVariable = "BERTH_SYNC_RUN";

/**
 * Kills everything that was started with a mark in its environment, so that it does not run next to the next script.
 * Checks twice, because a process has no environment for a moment while it executes another program.
 */
const endScript = `
end() {
  found=
  for one in /proc/[0-9]*; do
    if tr '\\0' '\\n' < "$one/environ" 2>/dev/null | grep -q "$1"; then
      found=yes
      kill -KILL "\${one#/proc/}" 2>/dev/null || :
    fi
  done
  [ -n "$found" ]
}
while :; do
  while end "$1"; do :; done
  sleep 0.1
  end "$1" || break
done
`;

/** Runs one of our scripts in the sandbox and returns its standard output. */
export async function runScript(
  target: SyncTarget,
  script: string,
  args: string[],
  input: Uint8Array = new Uint8Array(),
): Promise<Buffer> {
  const { signal } = target.options;
  signal?.throwIfAborted();
  const call = {
    argv: ["sh", "-c", script, "berth-sync", ...args],
    cwd: "/",
    encoding: "base64" as const,
    timeoutMs: scriptTimeoutMs,
    maxOutputBytes: outputBytesMax,
    ...(input.byteLength === 0 ? {} : { stdin: Buffer.from(input).toString("base64") }),
  };
  const result = await runOnce(target, call);
  signal?.throwIfAborted();
  if (result.exitCode === noGit) {
    throw new Failure("git is not installed in the sandbox.", {
      code: "no_git",
      hint: "Use an image that has git.",
    });
  }
  if (result.exitCode === noRepository) {
    throw new Failure(
      "The sandbox has no `.git/berth` of this checkout, so its changes cannot be found.",
      {
        code: "nothing_sent",
        hint: "A command may have removed it. Fetch single files with `berth cp`; the next `berth exec` sends everything again.",
      },
    );
  }
  if (result.exitCode !== 0 || result.truncated) {
    const stderr = Buffer.from(result.stderr, "base64").toString().trim();
    const outcome = result.timedOut
      ? "took too long"
      : `failed (${result.exitCode ?? result.signal})`;
    throw new Failure(`Updating the checkout in the sandbox ${outcome}: ${stderr.slice(-2000)}`, {
      code: "sync_failed",
    });
  }
  return Buffer.from(result.stdout, "base64");
}

/** Repeated with the same key it is the same run, however long it takes and however often the connection is lost. */
async function runOnce({ sandbox, options }: SyncTarget, call: ExecInput): Promise<ExecResult> {
  const { lease, signal } = options;
  const key = randomUUID();
  const marked = { ...call, env: { [runVariable]: key } };
  let lostAt = Number.POSITIVE_INFINITY;
  for (;;) {
    const sentAt = performance.now();
    try {
      return await sandbox.exec(marked, { ...options, idempotencyKey: key });
    } catch (thrown) {
      if (signal?.aborted) await endScripts(sandbox, lease, key);
      signal?.throwIfAborted();
      const now = performance.now();
      // A call that was open for a while had a connection again.
      lostAt = now - sentAt > retryForMs ? now : Math.min(lostAt, now);
      if (!isTransient(thrown) || now - lostAt > retryForMs) throw thrown;
      await sleep(retryDelayMs);
    }
  }
}

/**
 * A run with a key continues without its caller. It ends with its lease, but somebody else may hold that. Without a
 * key, all scripts of ours are ended.
 */
export async function endScripts(
  sandbox: SandboxHandle,
  lease: string | undefined,
  key = "",
): Promise<void> {
  const argv = ["sh", "-c", endScript, "berth-end", `^${runVariable}=${key}`];
  const options = { ...(lease && { lease }), answerWithinMs: endTimeoutMs };
  await sandbox.exec({ argv, cwd: "/" }, options).catch(() => {});
}

/** The outcome is unknown, or the call was not sent. */
function isTransient(thrown: unknown): boolean {
  const error = asBerthError(thrown);
  if (error?.code === "unavailable") return true;
  return error?.code === "operation_interrupted" && error.facts.admitted !== true;
}
