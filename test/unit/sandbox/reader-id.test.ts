/** How the ids of readers and viewers travel from a caller to the agent. */
import { expect, it } from "vitest";
import { agentHeaders } from "../../../src/protocol/internal/agent-wire.ts";
import { FakeBerth } from "../../fakes/berth.ts";

it("[P31] the id of a reader reaches the agent as a header, because older agents refuse unknown parameters", async () => {
  const berth = new FakeBerth();
  const local = berth.bind({ tenant: "local" });
  const { id } = await local.create({ waitMs: 10_000 });
  const sandbox = local.sandbox(id);
  const process = await sandbox.startProcess({ command: "echo hi" });
  const seen: [string, string | null][] = [];
  berth.container(id).respond = (request) => {
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
