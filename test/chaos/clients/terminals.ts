/** A client that uses terminals by WebSocket: it reads every line over interrupted connections, and types. */
import type { ClientMaker } from "../harness.ts";
import type { Stream } from "../history.ts";

const lines = 200;
const attachedForMs = 60_000;

const program = [
  `i=0; while [ $i -lt ${lines} ]; do echo L$i; i=$((i+1)); [ $((i%20)) -ne 0 ] || sleep 0.05; done`,
  "read word; exit 7",
].join("; ");

export const terminals: ClientMaker = (harness) => async () => {
  const sandboxId = harness.pickSandbox();
  const id = `t${harness.mark()}`;
  const call = { id, argv: ["sh", "-c", program] };
  const made = await harness.callSandbox("terminal", sandboxId, (sandbox) =>
    sandbox.createTerminal(call),
  );
  if (made.outcome !== "ack") return;
  const stream: Stream = { sandboxId, what: `terminal ${id}`, lines: [] };
  let text = "";
  await harness.call("attach", sandboxId, async () => {
    await using live = await harness.sdk
      .sandbox(sandboxId)
      .terminal(id)
      .attach({
        ...{ after: 0, reconnectMs: attachedForMs, signal: AbortSignal.timeout(attachedForMs) },
      });
    let typed = false;
    for await (const event of live) {
      if (event.type === "screen" || event.type === "truncated") stream.isTruncated = true;
      if (event.type === "output") text += Buffer.from(event.bytes).toString("latin1");
      if (!typed && text.includes(`L${lines - 1}\r\n`)) {
        typed = true;
        live.write(Buffer.from("word\n"));
      }
      if (event.type === "exit" && event.exitCode === 7) stream.lineCount = lines;
    }
  });
  const found = text.split("\r\n").filter((line) => /^L\d+$/.test(line));
  stream.lines.push(...found.map((line) => Number(line.slice(1))));
  harness.history.streams.push(stream);
  await harness.callSandbox("end of a terminal", sandboxId, (sandbox) => sandbox.endTerminal(id));
};
