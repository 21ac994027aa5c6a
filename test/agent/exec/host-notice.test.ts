/** An agent whose host goes: it says so to its object, and continues until the object ends the container. */
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { until } from "../../until.ts";
import { Agent } from "../agent.ts";

describe("the notice of a host that goes", () => {
  /** An object that answers each notice with this status. */
  const objectWith = async (status: number) => {
    const notices: IncomingMessage[] = [];
    const server = createServer((request, response) => {
      notices.push(request);
      response.writeHead(status).end("{}");
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    return { notices, callbackUrl: `http://127.0.0.1:${port}`, close: () => server.close() };
  };

  test("[CF8] reaches the object with secret and incarnation, and work continues until it ends the container", async () => {
    const { notices, callbackUrl, close } = await objectWith(202);
    const agent = await Agent.start({ callbackUrl });
    const exited = once(agent.process, "exit");
    agent.process.kill("SIGTERM");
    await until("the notice has come", () => notices.length === 1);
    const [notice] = notices;
    expect([notice?.method, notice?.url]).toEqual(["POST", "/v1/closing"]);
    expect(notice?.headers.authorization).toBe(`Bearer ${agent.secret}`);
    expect(notice?.headers["berth-incarnation"]).toBe(agent.incarnation);
    expect((await agent.sh("echo on")).stdout).toBe("on\n");
    agent.process.kill("SIGTERM");
    expect((await exited)[0]).toBe(0);
    expect(notices).toHaveLength(1);
    close();
    await agent.stop();
  });

  test("[CF8] ends everything at once where the object does not save", async () => {
    const { notices, callbackUrl, close } = await objectWith(409);
    const agent = await Agent.start({ callbackUrl });
    const exited = once(agent.process, "exit");
    agent.process.kill("SIGTERM");
    expect((await exited)[0]).toBe(0);
    expect(notices).toHaveLength(1);
    close();
    await agent.stop();
  });
});
