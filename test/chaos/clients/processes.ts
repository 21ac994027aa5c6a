/**
 * A client that starts processes with a key, some replacing another of the same name, and follows their logs to the
 * end over interrupted connections.
 */
import { appendLine, type ClientMaker, type Harness } from "../harness.ts";
import type { Stream } from "../history.ts";

const name = "one";
const lines = 200;
const followForMs = 90_000;

export const processes: ClientMaker = (harness) => async () => {
  const sandboxId = harness.pickSandbox();
  const run = harness.startRun(sandboxId);
  const { marker } = run;
  const loop = `i=0; while [ $i -lt ${lines} ]; do echo $i; i=$((i+1)); [ $((i%20)) -ne 0 ] || sleep 0.05; done`;
  const nameOptions = harness.random.chance(0.5) ? { name, ifRunning: "replace" as const } : {};
  const call = { command: `${appendLine("ran", marker)} || exit 9; ${loop}`, ...nameOptions };
  const started = await harness.callSandbox("process", sandboxId, (sandbox) =>
    sandbox.startProcess(call, { idempotencyKey: marker }),
  );
  if (started.outcome !== "ack") {
    // A process that started and was lost may have left its marker.
    Object.assign(run, { outcome: started.outcome, code: started.code });
    return;
  }
  if ("name" in nameOptions) await checkSingle(harness, sandboxId);
  const stream = await follow(harness, sandboxId, started.value.id);
  if (stream.lineCount !== undefined) run.outcome = "ack";
  if (harness.random.chance(0.3)) {
    await harness.callSandbox("end of a process", sandboxId, (sandbox) =>
      sandbox.endProcess(started.value.id),
    );
  }
};

/** Checks that replacing a process never leaves two running. */
async function checkSingle(harness: Harness, sandboxId: string): Promise<void> {
  const query = { name, state: "running" } as const;
  const seen = await harness.callSandbox("processes", sandboxId, (sandbox) =>
    sandbox.processes(query),
  );
  if (seen.outcome !== "ack") return;
  const got = String(seen.value.processes.length);
  const what = `how many run as ${name}`;
  harness.recordRead({ what, sandboxId, allowed: ["0", "1"], got });
}

async function follow(harness: Harness, sandboxId: string, id: string): Promise<Stream> {
  const stream: Stream = { sandboxId, what: `the log of process ${id}`, lines: [] };
  await harness.call("logs", sandboxId, async () => {
    const events = harness.sdk
      .sandbox(sandboxId)
      .process(id)
      .logs({
        ...{ stream: "stdout", reconnectMs: followForMs },
        signal: AbortSignal.timeout(followForMs),
      });
    let text = "";
    try {
      for await (const event of events) {
        if (event.type === "output") text += Buffer.from(event.bytes).toString("latin1");
        // On a full disk the log loses its beginning and reports it.
        if (event.type === "truncated") stream.isTruncated = true;
        if (event.type === "exit" && event.exitCode === 0) stream.lineCount = lines;
      }
    } finally {
      stream.lines.push(...text.split("\n").slice(0, -1).map(Number));
    }
  });
  harness.history.streams.push(stream);
  return stream;
}
