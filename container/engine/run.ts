/** Runs one program of the machine to its end, with a time limit and bounded output. */
const outputBytesDefault = 64 * 1024;
const stderrBytesMax = 64 * 1024;

export type RunOptions = {
  timeoutMs: number;
  stdin?: string;
  signal?: AbortSignal | undefined;
  /** What stdout says beyond this is read and dropped. */
  outputBytesMax?: number;
};

/** A program that did not succeed. */
export class ProgramError extends Error {
  /** Null: a signal ended it. */
  readonly exitCode: number | null;

  constructor(message: string, exitCode: number | null) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Returns stdout if the program succeeds; otherwise throws a `ProgramError` with its stderr. */
export async function run(argv: string[], options: RunOptions): Promise<string> {
  const child = Bun.spawn(argv, {
    cwd: "/",
    env: { PATH: process.env.PATH ?? "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" },
    stdin: options.stdin === undefined ? "ignore" : Buffer.from(options.stdin),
    stdout: "pipe",
    stderr: "pipe",
    timeout: options.timeoutMs,
    killSignal: "SIGKILL",
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  const [out, err] = await Promise.all([
    readBeginning(child.stdout, options.outputBytesMax ?? outputBytesDefault),
    readBeginning(child.stderr, stderrBytesMax),
    child.exited,
  ]);
  if (child.exitCode === 0) return out;
  const outcome = child.signalCode === null ? `exit code ${child.exitCode}` : child.signalCode;
  const message = `${argv[0]} failed (${outcome}): ${err.trim().slice(0, 500)}`;
  throw new ProgramError(message, child.signalCode === null ? child.exitCode : null);
}

/**
 * Reads a stream to its end and keeps its beginning: `cp` prints a line for each file that it cannot copy, and a program
 * whose output nobody reads would wait for ever.
 */
async function readBeginning(
  stream: ReadableStream<Uint8Array>,
  bytesMax: number,
): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytesLeft = bytesMax;
  for await (const chunk of stream) {
    if (bytesLeft === 0) continue;
    const kept = chunk.subarray(0, bytesLeft);
    bytesLeft -= kept.length;
    text += decoder.decode(kept, { stream: true });
  }
  return text;
}

export function isProgram(name: string): boolean {
  return Bun.which(name) !== null;
}
