import { closeSync, openSync, writeSync } from "node:fs";
import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { errorBodySchema } from "../../../src/protocol/errors.ts";
import { execResultSchema } from "../../../src/protocol/exec.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { until } from "../../until.ts";
import { Agent, kinds } from "../agent.ts";

describe.each(kinds)("the HTTP of the agent, process trees in a %s", (tree) => {
  const agent = Agent.forBlock({ tree });

  test("[X14] every route returns 401 without the secret, with an error body", async () => {
    const close = [`Bearer ${agent.secret}x`, `Basic ${agent.secret}`];
    const wrong = [undefined, "Bearer ", "Bearer wrong", ...close];
    for (const path of ["/v1/health", "/v1/exec", "/v1/ports/80/", "/nothing"]) {
      for (const authorization of wrong) {
        const headers = authorization === undefined ? {} : { authorization };
        const response = await fetch(`${agent.url}${path}`, { headers });
        expect(response.status, `${path} ${authorization}`).toBe(401);
        const body = errorBodySchema.parse(await response.json());
        expect(body.error.code).toBe("unauthenticated");
      }
    }
    expect((await agent.request("/v1/health")).status).toBe(200);
  });

  test("[X14] a command in the sandbox that calls the agent's port gets 401", async () => {
    const request = "GET /v1/health HTTP/1.1\\r\\nHost: agent\\r\\nConnection: close\\r\\n\\r\\n";
    const script = `exec 3<>/dev/tcp/127.0.0.1/${agent.port}; printf '${request}' >&3; cat <&3`;
    const result = await agent.exec({ argv: ["bash", "-c", script] });
    expect(result.stdout).toMatch(/^HTTP\/1.1 401 /);
    expect(result.stdout).toContain('"unauthenticated"');
    expect(result.stdout).not.toContain(agent.secret);
  });

  test("[X15] every response has the incarnation and the protocol, errors too", async () => {
    const answers = [
      await agent.request("/v1/health"),
      await agent.post({ command: "true" }),
      await agent.post({ command: "true", cwd: "/nope" }),
      await agent.request("/nothing"),
      await fetch(`${agent.url}/v1/health`),
    ];
    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 400, 404, 401]);
    for (const { headers } of answers) {
      expect(headers.get("berth-incarnation")).toBe(agent.incarnation);
      expect(headers.get("berth-protocol")).toBe("2");
    }
    expect(agent.incarnation).toMatch(new RegExp(`^${agent.startId}\\.[a-z0-9]{16}$`));
  });

  test("[X15] a call for another incarnation is refused", async () => {
    const headers = { "berth-incarnation": `${agent.startId}.aaaaaaaaaaaaaaaa` };
    const refused = await agent.refused({ command: "touch ran" }, { headers });
    expect(refused).toMatchObject({ status: 410, error: { code: "stale_handle" } });
    const meant = { "berth-incarnation": agent.incarnation };
    expect((await agent.post({ command: "true" }, { headers: meant })).status).toBe(200);
    expect((await agent.sh("ls ran")).exitCode).not.toBe(0);
  });

  test("[X16] a fence below the highest is refused, and nothing runs", async () => {
    await using own = await Agent.start({ tree });
    const fenced = (fence: string, command: string) =>
      own.post({ command }, { headers: { "berth-fence": fence } });
    expect((await fenced("7", "touch first")).status).toBe(200);
    const stale = await fenced("6", "touch second");
    expect(stale.status).toBe(409);
    expect(await stale.json()).toMatchObject({ error: { code: "stale_fence", fence: 7 } });
    expect((await fenced("7", "true")).status).toBe(200);
    expect((await fenced("8", "ls")).status).toBe(200);
    expect((await own.post({ command: "true" })).status).toBe(409);
    expect((await fenced("x", "true")).status).toBe(400);
    expect((await own.health()).fence).toBe(8);
    expect(await (await fenced("8", "ls")).json()).toMatchObject({ stdout: "first\n" });
  });

  test("[X17] a response that comes soon is plain JSON with its length", async () => {
    const response = await agent.post({ command: "echo soon" });
    const text = await response.text();
    expect(response.headers.get("content-length")).toBe(String(Buffer.byteLength(text)));
    expect(text).toMatch(/^\{.*\}$/);
    expect(response.headers.get("content-type")).toMatch(/^application\/json/);
    execResultSchema.parse(JSON.parse(text));
  });

  test("[X17] a response that takes longer begins with spaces, and is still JSON", async () => {
    const response = await agent.post({ command: "sleep 3.5; echo late" });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toMatch(/^application\/json/);
    const chunks: string[] = [];
    for await (const chunk of response.body ?? []) chunks.push(Buffer.from(chunk).toString());
    const text = chunks.join("");
    expect(chunks[0]).toMatch(/^ +$/);
    expect(text).toMatch(/^ {2,}\{.*\}$/);
    const result = execResultSchema.parse(JSON.parse(text));
    expect(result).toMatchObject({ stdout: "late\n", exitCode: 0 });
  });

  test.each([
    ["at once", 0],
    ["during the heartbeat", 2500],
  ])(
    "[X18] a caller that disconnects %s ends the command and its whole tree",
    async (_when, afterMs) => {
      const caller = new AbortController();
      const command = `echo $$ > up; setsid sh -c 'trap "" TERM; sleep 1000' & sleep 1000`;
      await agent.sh("rm -f up");
      const post = agent.post({ command }, { signal: caller.signal });
      post.catch(() => {});
      await until("the command runs", async () => (await agent.sh("cat up")).exitCode === 0);
      if (afterMs > 0) expect((await post).status).toBe(200);
      expect(agent.left().length).toBeGreaterThanOrEqual(3);
      caller.abort();
      await until("its tree has ended", () => agent.left().length === 0);
      await agent.untilRunning(0);
    },
  );

  test("[X19] no more than the limit run at once; the next one is refused, not queued", async () => {
    const count = limits.execConcurrentMax;
    await agent.sh("mkfifo gate");
    const running = Array.from({ length: count }, () => agent.sh("read line < gate; echo $line"));
    await agent.untilRunning(count);
    const refused = await agent.refused({ command: "true" });
    const error = { code: "too_many", limit: count, retryable: true };
    expect(refused).toMatchObject({ status: 429, error });
    // Opened for reading and writing, so that neither side waits for the other.
    const gate = openSync(`${agent.workspace}/gate`, "r+");
    writeSync(gate, "go\n".repeat(count));
    const results = await Promise.all(running);
    closeSync(gate);
    expect(new Set(results.map(({ exitCode }) => exitCode))).toEqual(new Set([0]));
    expect(await agent.sh("true")).toMatchObject({ exitCode: 0 });
  });

  test("[X20] errors have the request id and a fitting status", async () => {
    const headers = { "berth-request-id": "request77" };
    const notJson = await agent.request("/v1/exec", { method: "POST", body: "{", headers });
    expect(notJson.status).toBe(400);
    const body = { error: { code: "bad_json" }, requestId: "request77" };
    expect(await notJson.json()).toMatchObject(body);
    const method = await agent.request("/v1/exec", { headers });
    expect(method.status).toBe(405);
    expect(method.headers.get("allow")).toBe("POST");
    const large = new Uint8Array(limits.bodyBytesMax + 1);
    for (const tooLarge of [large, new Blob([large]).stream()]) {
      const init = { method: "POST", body: tooLarge, duplex: "half" } as RequestInit;
      expect((await agent.request("/v1/exec", init)).status).toBe(413);
    }
  });

  test("[X20] a caller that disconnects in the middle of a request leaves nothing behind", async () => {
    const before = agent.descriptors();
    const socket = connect(agent.port, "127.0.0.1");
    await new Promise((resolve) => socket.once("connect", resolve));
    socket.write(
      `POST /v1/exec HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${agent.secret}\r\ncontent-length: 1000\r\n\r\n{`,
    );
    await until("the agent has the connection", () => agent.descriptors() > before);
    socket.destroy();
    await until("the agent has closed it", () => agent.descriptors() <= before);
    expect(await agent.sh("echo fine")).toMatchObject({ stdout: "fine\n" });
  });
});
