/** Runs one program of the machine to its end, with a time limit and bounded output. */
const outputCharactersDefault = 64 * 1024;

export type RunOptions = {
  timeoutMs: number;
  stdin?: string;
  signal?: AbortSignal | undefined;
  outputCharactersMax?: number;
};

/** Returns stdout if the program succeeds; otherwise throws with its stderr. */
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
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (child.exitCode === 0)
    return out.slice(0, options.outputCharactersMax ?? outputCharactersDefault);
  const outcome = child.signalCode === null ? `exit code ${child.exitCode}` : child.signalCode;
  throw new Error(`${argv[0]} failed (${outcome}): ${err.trim().slice(0, 500)}`);
}

export function isProgram(name: string): boolean {
  return Bun.which(name) !== null;
}
