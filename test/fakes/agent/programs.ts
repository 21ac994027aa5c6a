/**
 * The programs that an agent in memory knows. Each behaves like the real one of its name; see shell.ts for the built-
 * ins.
 */
import type { ProgramDeps } from "./shell.ts";

type Program = (args: string[], running: ProgramDeps) => Promise<number>;

const linesAtOnce = 1000;

export const programs: Record<string, Program | undefined> = {
  true: async () => 0,
  false: async () => 1,
  async echo(args, { io }) {
    const bare = args[0] === "-n";
    await io.out(bare ? args.slice(1).join(" ") : `${args.join(" ")}\n`);
    return 0;
  },
  async printenv([name = ""], { io, env }) {
    const value = env[name];
    if (value === undefined) return 1;
    await io.out(`${value}\n`);
    return 0;
  },
  async cat(_args, { io, stop }) {
    for (;;) {
      const bytes = await io.input.read(stop);
      if (bytes === undefined) return 0;
      await io.out(bytes);
    }
  },
  async sleep([seconds], { stop }) {
    await stop.sleep(Number(seconds) * 1000);
    return 0;
  },
  async seq([last], { io, stop }) {
    for (let from = 1; from <= Number(last); from += linesAtOnce) {
      const count = Math.min(linesAtOnce, Number(last) - from + 1);
      await io.out(Array.from({ length: count }, (_, n) => `${from + n}\n`).join(""));
      if (stop.why !== undefined) await stop.sleep(0);
    }
    return 0;
  },
  async stty([what], { io }) {
    const size = io.size?.();
    if (what !== "size" || size === undefined) return 1;
    await io.out(`${size.rows} ${size.cols}\n`);
    return 0;
  },
};
