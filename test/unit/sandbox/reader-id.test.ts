/** How the ids of readers and viewers travel from a caller to the agent. */
import { expect, it } from "vitest";
import { agentHeaders } from "../../../src/protocol/internal/agent-wire.ts";
import { startSandbox } from "./harness.ts";

it("[P31] the id of a reader reaches the agent as a header, because older agents refuse unknown parameters", async () => {
  const { sandbox, container } = await startSandbox();
  const process = await sandbox.startProcess({ command: "echo hi" });
  const seen: [string, string | null][] = [];
  container.respond = (request) => {
    const { pathname, search } = new URL(request.url);
    if (pathname.endsWith("/logs")) seen.push([search, request.headers.get(agentHeaders.reader)]);
    return undefined;
  };
  for (const query of [{ reader: "r1" }, {}]) {
    for await (const _ of await sandbox.processLogs(process.id, query));
  }
  expect(seen).toEqual([
    ["?after=0&follow=0", "r1"],
    ["?after=0&follow=0", null],
  ]);
  await expect(sandbox.processLogs(process.id, { reader: "a b" })).rejects.toMatchObject({
    code: "bad_request",
    facts: { field: "reader" },
  });
});
