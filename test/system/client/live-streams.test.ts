/**
 * Tests that a followed log and an attached terminal of the SDK continue over lost connections without losing a byte.
 */
import { expect, test } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { sharedServerOfFile } from "../shared-server.ts";
import { CutProxy } from "./cut-proxy.ts";

const server = await sharedServerOfFile();
const id = await server.create();

const lines = Array.from({ length: 60 }, (_, n) => `line ${n + 1}`);
const slowly = "for n in $(seq 1 60); do echo line $n; sleep 0.03; done";

test("[LV19] a followed log is complete over cut connections and ends with the exit", async () => {
  await using proxy = await CutProxy.to(server.url);
  const sandbox = connect({ url: proxy.url, key: server.key }).sandbox(id);
  const process = await sandbox.processes.start({ command: `${slowly}; exit 4` });
  let text = "";
  let cuts = 0;
  let exit: unknown;
  for await (const event of sandbox.process(process.id).logs()) {
    if (event.type === "output") text += new TextDecoder().decode(event.bytes);
    if (event.type === "exit") exit = event.exitCode;
    if (cuts < 3 && text.includes(`line ${(cuts + 1) * 10}\n`)) {
      cuts += 1;
      if (cuts === 2) proxy.cutSilently();
      else proxy.cut();
    }
  }
  expect({ cuts, exit, text }).toEqual({ cuts: 3, exit: 4, text: `${lines.join("\n")}\n` });
});

test("[LV20] an attached terminal continues by offset over cut connections and ends with the exit", async () => {
  await using proxy = await CutProxy.to(server.url);
  const sandbox = connect({ url: proxy.url, key: server.key }).sandbox(id);
  await sandbox.terminals.create({ id: "t", argv: ["sh", "-c", `read go; ${slowly}; exit 3`] });
  await using live = await sandbox.terminal("t").attach({ after: 0 });
  live.write(new TextEncoder().encode("go\n"));
  let text = "";
  let cuts = 0;
  let back = 0;
  let exit: unknown;
  for await (const event of live) {
    if (event.type === "output") text += new TextDecoder().decode(event.bytes);
    if (event.type === "connection" && event.state === "back") back += 1;
    if (event.type === "exit") exit = event.exitCode;
    if (cuts === back && cuts < 2 && text.includes(`line ${(cuts + 1) * 10}\r\n`)) {
      cuts += 1;
      proxy.cut();
    }
  }
  const expected = `go\r\n${lines.join("\r\n")}\r\n`;
  expect({ cuts, back, exit, text }).toEqual({ cuts: 2, back: 2, exit: 3, text: expected });
});

test("[LV20] an aborted signal prevents attaching, and a later abort detaches", async () => {
  const sandbox = connect(server).sandbox(id);
  await sandbox.terminals.create({ id: "given-up", argv: ["sh", "-c", "sleep 60"] });
  const ended = AbortSignal.abort(new Error("given up"));
  await expect(sandbox.terminal("given-up").attach({ signal: ended })).rejects.toThrow("given up");
  const ends = new AbortController();
  await using live = await sandbox.terminal("given-up").attach({ signal: ends.signal });
  const seen: string[] = [];
  const reading = (async () => {
    for await (const event of live) seen.push(event.type);
  })();
  ends.abort();
  await reading;
  expect(seen).not.toContain("exit");
  await sandbox.terminal("given-up").delete();
});
