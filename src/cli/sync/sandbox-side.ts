/**
 * Owns running our scripts in a sandbox: arguments, bytes in and out, what a failure there means.
 * Does not own the scripts, nor when they run.
 */
import type { SandboxApi } from "../../protocol/api.ts";
import { Failure } from "../failure.ts";

export type SandboxSide = {
  sandbox: SandboxApi;
  lease?: string | undefined;
  signal?: AbortSignal | undefined;
};

/** Unpacking and checking out the largest repositories. */
const scriptMs = 30 * 60_000;
const outputBytesMax = 8 * 1024 * 1024;
const noGit = 127;
/** As leaveScript says it. */
const noRepository = 66;

export async function runThere(
  { sandbox, lease, signal }: SandboxSide,
  script: string,
  args: string[],
  input: Uint8Array = new Uint8Array(),
): Promise<Buffer> {
  signal?.throwIfAborted();
  const call = {
    argv: ["sh", "-c", script, "berth-sync", ...args],
    cwd: "/",
    encoding: "base64" as const,
    timeoutMs: scriptMs,
    maxOutputBytes: outputBytesMax,
    ...(input.byteLength === 0 ? {} : { stdin: Buffer.from(input).toString("base64") }),
  };
  const result = await sandbox.exec(call, lease === undefined ? {} : { lease });
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
