/**
 * Owns running our scripts in a sandbox: arguments, bytes in and out, what a failure there means, and that each runs
 * once over cut connections, and ends with whoever calls it off. Does not own the scripts, nor when they run.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { SandboxApi } from "../../protocol/api.ts";
import { asBerthError } from "../../protocol/errors.ts";
import type { ExecInput, ExecResult } from "../../protocol/exec.ts";
import type { FileApi, WriteOptions } from "../../protocol/file-api.ts";
import type { KeyedOptions } from "../../protocol/work-api.ts";
import { Failure } from "../failure.ts";

type Limits = { signal?: AbortSignal; answerWithinMs?: number };

/** What a sync needs of a sandbox; of the SDK's handle each call can be given up. */
export type SyncedSandbox = Omit<SandboxApi, "exec" | "writeFile"> & {
  exec(call: ExecInput, options?: KeyedOptions & Limits): Promise<ExecResult>;
  writeFile(
    path: string,
    content: Parameters<FileApi["writeFile"]>[1],
    options?: WriteOptions & Limits,
  ): ReturnType<FileApi["writeFile"]>;
};

export type SandboxSide = {
  sandbox: SyncedSandbox;
  lease?: string | undefined;
  signal?: AbortSignal | undefined;
};

/** Unpacking and checking out the largest repositories. */
const scriptMs = 30 * 60_000;
const outputBytesMax = 8 * 1024 * 1024;
const noGit = 127;
/** As leaveScript says it. */
const noRepository = 66;

/** A lease that is kept by a connection is lost after ten seconds without: that ends it earlier. */
const triesForMs = 60_000;
const triesAgainMs = 500;
const endsWithinMs = 2_000;
const runVariable = "BERTH_SYNC_RUN";

/**
 * All that was started under a mark: whoever leaves must not leave them behind to work beside the next one. It looks
 * twice: a process that takes another program's place has no environment for a moment.
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

export async function runThere(
  side: SandboxSide,
  script: string,
  args: string[],
  input: Uint8Array = new Uint8Array(),
): Promise<Buffer> {
  const { signal } = side;
  signal?.throwIfAborted();
  const call = {
    argv: ["sh", "-c", script, "berth-sync", ...args],
    cwd: "/",
    encoding: "base64" as const,
    timeoutMs: scriptMs,
    maxOutputBytes: outputBytesMax,
    ...(input.byteLength === 0 ? {} : { stdin: Buffer.from(input).toString("base64") }),
  };
  const result = await runOnce(side, call);
  signal?.throwIfAborted();
  if (result.exitCode === noGit) {
    throw new Failure("git is not installed in the sandbox.", {
      code: "no_git",
      hint: "Use an image that has git.",
    });
  }
  if (result.exitCode === noRepository) {
    throw new Failure("The command removed `.git` of the sandbox, which tells what has changed.", {
      code: "sync_failed",
    });
  }
  if (result.exitCode !== 0 || result.truncated) {
    const said = Buffer.from(result.stderr, "base64").toString().trim();
    const how = result.timedOut ? "took too long" : `failed (${result.exitCode ?? result.signal})`;
    throw new Failure(`The checkout of the sandbox ${how}: ${said.slice(-2000)}`, {
      code: "sync_failed",
    });
  }
  return Buffer.from(result.stdout, "base64");
}

/** Asked again under the same key it is still the same run, however long that took and however often it was cut off. */
async function runOnce(side: SandboxSide, call: ExecInput): Promise<ExecResult> {
  const { sandbox, signal } = side;
  const key = randomUUID();
  const marked = { ...call, env: { [runVariable]: key } };
  const options = { ...givenOf(side), idempotencyKey: key };
  let lostAt = Number.POSITIVE_INFINITY;
  for (;;) {
    const askedAt = performance.now();
    try {
      return await sandbox.exec(marked, options);
    } catch (thrown) {
      if (signal?.aborted) await endScripts(side, key);
      signal?.throwIfAborted();
      const now = performance.now();
      // One that was answered for a while had its connection back.
      lostAt = now - askedAt > triesForMs ? now : Math.min(lostAt, now);
      if (!isPassing(thrown) || now - lostAt > triesForMs) throw thrown;
      await pause(triesAgainMs);
    }
  }
}

/**
 * What has a key goes on without its caller. With its lease it ends too, but somebody else may hold that. Without the
 * key: whatever script of ours runs there.
 */
export async function endScripts({ sandbox, lease }: SandboxSide, key = ""): Promise<void> {
  const argv = ["sh", "-c", endScript, "berth-end", `^${runVariable}=${key}`];
  const options = { ...givenOf({ lease }), answerWithinMs: endsWithinMs };
  await sandbox.exec({ argv, cwd: "/" }, options).catch(() => {});
}

/** Of a call: what there is. */
export function givenOf({ lease, signal }: Omit<SandboxSide, "sandbox">): {
  lease?: string;
  signal?: AbortSignal;
} {
  return { ...(lease === undefined ? {} : { lease }), ...(signal === undefined ? {} : { signal }) };
}

/** Nobody knows what became of it, or it was not even asked. */
function isPassing(thrown: unknown): boolean {
  const known = asBerthError(thrown);
  if (known?.code === "unavailable") return true;
  return known?.code === "operation_interrupted" && known.facts.admitted !== true;
}
