import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { until } from "../../until.ts";
import { Agent, kinds } from "../agent.ts";
import { Asker } from "./processes.ts";

describe.each(kinds)("the end of a process, trees held by %s", (tree) => {
  const agent = Agent.forBlock({ tree });
  const ask = new Asker(agent);

  test("[P25] a signal for a tree that has ended reaches no command that started since", async () => {
    const ended = await ask.sh("read line");
    // A process of another command has its pipe open, so it still runs although its tree is gone.
    const holder = await ask.sh(
      `exec 3> /proc/${ended.pid}/fd/1; echo open; while :; do echo more >&3; sleep 0.01; done`,
    );
    await ask.wait(holder.id, { for: "log:open" });
    await ask.written(ended.id, "", { eof: 1 });
    await until("its first process is gone", () => !existsSync(`/proc/${ended.pid}`));
    const later: Promise<{ exitCode: number | null; signal: string | null }>[] = [];
    const begun = performance.now();
    await until("others have begun meanwhile, one after the other", () => {
      const due = (performance.now() - begun) / 100 > later.length;
      if (due) later.push(agent.sh("until [ -e go ]; do sleep 0.1; done; exit 7"));
      return later.length === 10;
    });
    expect(await ask.signal(ended.id, "SIGKILL")).toMatchObject({ state: "running" });
    await ask.exited(ended.id);
    await ask.end(holder.id);
    await agent.sh("touch go");
    for (const next of await Promise.all(later)) {
      expect(next).toMatchObject({ exitCode: 7, signal: null });
    }
  });
});
