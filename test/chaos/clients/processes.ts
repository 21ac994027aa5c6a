/**
 * Owns the client that starts processes with a key, some in the place of another under a name, and follows their logs,
 * over cut connections, to their end.
 */
import { type ClientMaker, type Desk, marking } from "../harness.ts";
import type { Run, Stream } from "../history.ts";

const name = "one";
const lines = 200;
const followForMs = 90_000;

export const processes: ClientMaker = (desk) => async () => {
  const box = desk.box();
  const marker = desk.mark();
  const run: Run = { box, marker, outcome: "unknown" };
  desk.history.runs.push(run);
  const loop = `i=0; while [ $i -lt ${lines} ]; do echo $i; i=$((i+1)); [ $((i%20)) -ne 0 ] || sleep 0.05; done`;
  const named = desk.random.chance(0.5) ? { name, ifRunning: "replace" as const } : {};
  const call = { command: `${marking("ran", marker)} || exit 9; ${loop}`, ...named };
  const started = await desk.ask("process", box, (sandbox) =>
    sandbox.startProcess(call, { idempotencyKey: marker }),
  );
  if (started.outcome !== "ack") {
    // Started and lost again it may have left its marker.
    Object.assign(run, { outcome: started.outcome, code: started.code });
    return;
  }
  if ("name" in named) await look(desk, box);
  const stream = await follow(desk, box, started.value.id);
  if (stream.whole !== undefined) run.outcome = "ack";
  if (desk.random.chance(0.3)) {
    await desk.ask("end of a process", box, (sandbox) => sandbox.endProcess(started.value.id));
  }
};

/** Whoever replaces whom: never two at once. */
async function look(desk: Desk, box: string): Promise<void> {
  const query = { name, state: "running" } as const;
  const seen = await desk.ask("processes", box, (sandbox) => sandbox.processes(query));
  if (seen.outcome !== "ack") return;
  const got = String(seen.value.processes.length);
  const read = {
    client: desk.name,
    what: `how many run as ${name}`,
    box,
    allowed: ["0", "1"],
    got,
  };
  desk.history.reads.push(read);
}

async function follow(desk: Desk, box: string, id: string): Promise<Stream> {
  const stream: Stream = { box, what: `the log of process ${id}`, lines: [] };
  await desk.call("logs", box, async (berth) => {
    const events = berth.sandbox(box).followLogs(id, {
      ...{ stream: "stdout", reconnectMs: followForMs },
      signal: AbortSignal.timeout(followForMs),
    });
    let text = "";
    try {
      for await (const event of events) {
        if (event.type === "output") text += Buffer.from(event.bytes).toString("latin1");
        // On a full disk the log loses its beginning, and says so.
        if (event.type === "truncated") stream.isShort = true;
        if (event.type === "exit" && event.exitCode === 0) stream.whole = lines;
      }
    } finally {
      stream.lines.push(...text.split("\n").slice(0, -1).map(Number));
    }
  });
  desk.history.streams.push(stream);
  return stream;
}
