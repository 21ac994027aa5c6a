/** The official client of the Model Context Protocol against a real Berth. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { describe, expect, it } from "vitest";
import { until } from "../../until.ts";
import { CliUser, main } from "../cli/cli-user.ts";
import { sharedServerOfFile } from "../shared-server.ts";

const server = await sharedServerOfFile();
/** Only a hang takes this long. */
const patient = { timeout: 120_000 };

type Answer = { structuredContent?: Record<string, unknown>; isError?: boolean };

function connect(key: string) {
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  return connectBy(
    new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit }),
  );
}

async function connectBy(transport: StreamableHTTPClientTransport | StdioClientTransport) {
  const client = new Client({ name: "test", version: "1" });
  // The package's own types disagree under exactOptionalPropertyTypes.
  await client.connect(transport as Parameters<typeof client.connect>[0], patient);
  const call = async (name: string, args: Record<string, unknown> = {}, options = {}) =>
    (await client.callTool({ name, arguments: args }, undefined, {
      ...patient,
      ...options,
    })) as Answer;
  const result = async (name: string, args: Record<string, unknown> = {}) => {
    const answer = await call(name, args);
    expect(answer).not.toHaveProperty("isError");
    return answer.structuredContent ?? {};
  };
  return { client, call, result };
}

describe("an agent with the Model Context Protocol", () => {
  it("[WM1] creates a sandbox, works in it, saves, restores and forks it", async () => {
    const { client, call, result } = await connect(server.key);
    const { tools } = await client.listTools();
    expect(tools.find(({ name }) => name === "file_read")?.annotations?.readOnlyHint).toBe(true);
    expect(tools.find(({ name }) => name === "run")?.annotations?.destructiveHint).toBe(true);
    const { sandbox } = await result("sandbox_create");
    expect(await result("run", { sandbox, command: "echo out; exit 3" })).toMatchObject({
      output: "out\n",
      exitCode: 3,
    });
    await result("file_write", { sandbox, path: "src/a.txt", content: "one two\n" });
    await result("file_edit", { sandbox, path: "src/a.txt", old: "two", new: "2" });
    expect(
      await call("file_edit", { sandbox, path: "src/a.txt", old: "zwei", new: "" }),
    ).toMatchObject({ isError: true });
    const { matches } = await result("file_search", { sandbox, pattern: "^one [0-9]$" });
    expect(matches).toEqual(["./src/a.txt:1:one 2"]);
    const { id: checkpoint } = await result("checkpoint_create", { sandbox });
    await result("run", { sandbox, command: "rm -r src" });
    await result("checkpoint_restore", { sandbox, checkpoint });
    const fork = await result("sandbox_fork", { sandbox });
    const read = await result("file_read", { sandbox: fork.sandbox, path: "src/a.txt" });
    expect(read.content).toBe("one 2\n");
    const { token } = await result("lease_acquire", { sandbox });
    expect(await call("run", { sandbox, command: "true" })).toMatchObject({ isError: true });
    await result("run", { sandbox, command: "true", lease: token });
    await result("lease_release", { sandbox, lease: token });
    const { contents } = await client.readResource({
      uri: `berth://${sandbox}/files/workspace/src/a.txt`,
    });
    expect(contents).toMatchObject([{ text: "one 2\n" }]);
    await client.close();
  });

  it("[WM2] gets progress, a cursor where output is cut, and an end to what it cancels", async () => {
    const { client, call, result } = await connect(server.key);
    const { sandbox } = await result("sandbox_create");
    const seen: number[] = [];
    await call(
      "run",
      { sandbox, command: "echo one; sleep 2; echo two" },
      { onprogress: ({ progress }: { progress: number }) => seen.push(progress) },
    );
    // One a second at most: the last piece may come without.
    expect([[4], [4, 8]]).toContainEqual(seen);
    const cut = await result("run", { sandbox, command: "seq 1 10000" });
    expect(cut).toMatchObject({ cut: true, exitCode: 0 });
    const { process, cursor } = cut;
    const rest = await result("process_log", { sandbox, process, after: cursor });
    expect(`${cut.output}${rest.output}`).toBe(
      Array.from({ length: 10_000 }, (_, index) => `${index + 1}\n`).join(""),
    );
    const abort = new AbortController();
    const running = async () => {
      const { processes } = await result("process_list", { sandbox });
      return (processes as { state: string }[]).filter(({ state }) => state === "running").length;
    };
    const cancelled = call("run", { sandbox, command: "sleep 1000" }, { signal: abort.signal });
    const refused = expect(cancelled).rejects.toThrow();
    await until("it runs", async () => (await running()) === 1);
    abort.abort();
    await refused;
    await until("it has ended", async () => (await running()) === 0);
    await client.close();
  });

  it("[WM3] reaches with the token of a sandbox that one alone, and needs not name it", async () => {
    const sandbox = await server.create();
    const rights = ["read", "exec", "files"];
    const made = await server.call("POST", `/v1/sandboxes/${sandbox}/tokens`, { rights });
    const { client, call, result } = await connect(String(made.body.token));
    expect(await result("run", { command: "echo mine" })).toMatchObject({ output: "mine\n" });
    expect(await call("sandbox_list")).toMatchObject({ isError: true });
    expect(await call("sandbox_destroy")).toMatchObject({ isError: true });
    const other = await server.create();
    expect(await call("run", { sandbox: other, command: "true" })).toMatchObject({ isError: true });
    await client.close();
    await expect(connect("wrong")).rejects.toThrow();
  });

  it("[WM4] gets the same by `berth mcp`, which ends with its client or a signal, and its commands with it", async () => {
    using user = new CliUser(server);
    const start = () =>
      new StdioClientTransport({
        command: process.execPath,
        args: [main, "mcp"],
        env: user.environment,
        cwd: user.home,
      });
    const transport = start();
    const { client, call, result } = await connectBy(transport);
    expect((await client.listTools()).tools.length).toBeGreaterThan(20);
    const { sandbox } = await result("sandbox_create");
    const seen: number[] = [];
    const ran = await call(
      "run",
      { sandbox, command: "echo one; sleep 2; echo two" },
      { onprogress: ({ progress }: { progress: number }) => seen.push(progress) },
    );
    expect(ran.structuredContent).toMatchObject({ output: "one\ntwo\n", exitCode: 0 });
    // One a second at most: the last piece may come without.
    expect([[4], [4, 8]]).toContainEqual(seen);
    const running = async () => {
      const { body } = await server.call("GET", `/v1/sandboxes/${sandbox}/processes`);
      return (body.processes as { state: string }[]).filter(({ state }) => state === "running");
    };
    const abort = new AbortController();
    const cancelled = call("run", { sandbox, command: "sleep 1000" }, { signal: abort.signal });
    const refused = expect(cancelled).rejects.toThrow();
    await until("it runs", async () => (await running()).length === 1);
    abort.abort();
    await refused;
    await until("it has ended", async () => (await running()).length === 0);
    for (const signal of ["SIGTERM", undefined] as const) {
      const other = start();
      const agent = await connectBy(other);
      const broken = expect(
        agent.call("run", { sandbox, command: "sleep 1000" }),
      ).rejects.toThrow();
      await until("it runs", async () => (await running()).length === 1);
      const closed = new Promise<void>((resolve) => {
        agent.client.onclose = resolve;
      });
      if (signal === undefined) await agent.client.close();
      else process.kill(other.pid ?? 0, signal);
      await closed;
      await broken;
      await until("it has ended", async () => (await running()).length === 0);
    }
    await client.close();
  });
});
