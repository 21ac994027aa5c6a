/** Tests what a checkout remembers of sandboxes that another tenant or another server made. */
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { useSharedServer } from "../shared-server.ts";
import { CliUser } from "./cli-user.ts";

type Listed = { sandboxes: { id: string; state: string }[] };
type Recorded = { id: string; tenantId?: string; server?: string };

const server = await useSharedServer();
const neighbour = await useSharedServer();
const user = new CliUser(server);
afterAll(async () => {
  user[Symbol.dispose]();
  await neighbour[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

/** The environment of another tenant of the same server. */
const asNeighbour = { BERTH_URL: neighbour.url, BERTH_KEY: neighbour.key };
const stateFile = (cwd: string) => join(cwd, ".berth/state.json");
const readState = (cwd: string) => readFileSync(stateFile(cwd), "utf8");
const recorded = (cwd: string) =>
  (JSON.parse(readState(cwd)) as { sandboxes: Recorded[] }).sandboxes;
const list = async (cwd: string, env: Record<string, string> = {}) =>
  (await user.json<Listed>(["list"], { cwd, env })).sandboxes.map(({ id }) => id);
const withoutOrigin = (cwd: string) => {
  const sandboxes = recorded(cwd).map(({ tenantId: _id, server: _server, ...rest }) => rest);
  writeFileSync(stateFile(cwd), JSON.stringify({ version: 1, sandboxes }));
};

/** A server that has no sandboxes. Without `tenantId`: of a version that does not say whose they are. */
async function emptyServer(tenantId?: string) {
  const http = createServer((request, response) => {
    const isList = request.url?.startsWith("/v1/sandboxes?") === true;
    const error = { code: "not_found", message: "No such sandbox.", retryable: false };
    const body = isList ? { sandboxes: [], nextCursor: null, tenantId } : { error, requestId: "r" };
    response.writeHead(isList ? 200 : 404, { "content-type": "application/json" });
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const { port } = http.address() as AddressInfo;
  return {
    env: { BERTH_URL: `http://127.0.0.1:${port}`, BERTH_KEY: "any" },
    [Symbol.asyncDispose]: async () => {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}

it("[CL15] a list with another tenant's key leaves a sandbox out, says so, and forgets nothing", async () => {
  const cwd = user.repo("foreign", "https://example.com/team/foreign.git");
  const { id } = await user.startSandbox(cwd);
  const before = readState(cwd);
  expect(recorded(cwd)).toMatchObject([
    { id, server: server.url, tenantId: expect.stringMatching(/^[\w-]{16}$/) },
  ]);
  const result = await user.berth(["list"], { cwd, env: asNeighbour });
  expect(result).toMatchObject({ code: 0, stdout: "" });
  expect(result.stderr).toBe(
    `Not shown: 1 sandbox of another server or tenant (${server.url}), known from \`.berth/state.json\`.\nNo sandboxes.\n`,
  );
  expect(readState(cwd)).toBe(before);
  expect(await list(cwd)).toEqual([id]);
});

it("[CL15] a list of another server forgets nothing either, whether or not that says whose it is", async () => {
  const cwd = user.repo("elsewhere", "https://example.com/team/elsewhere.git");
  const { id } = await user.startSandbox(cwd);
  for (const tenantId of ["0123456789abcdef", undefined]) {
    await using other = await emptyServer(tenantId);
    const before = readState(cwd);
    expect(await list(cwd, other.env)).toEqual([]);
    expect(readState(cwd)).toBe(before);
  }
  expect(await list(cwd)).toEqual([id]);
});

it("[CL15] the tenant that made a sandbox forgets it once it knows it no more", async () => {
  const cwd = user.repo("ended", "https://example.com/team/ended.git");
  await user.startSandbox(cwd);
  await using same = await emptyServer(recorded(cwd)[0]?.tenantId);
  expect(await list(cwd, same.env)).toEqual([]);
  expect(recorded(cwd)).toEqual([]);
});

it("[CL15] two tenants have a sandbox each for one branch of one checkout", async () => {
  const cwd = user.repo("shared", "https://example.com/team/shared.git");
  const first = await user.startSandbox(cwd);
  const made = await user.json<{ sandbox: { id: string } }>(["start"], { cwd, env: asNeighbour });
  const { id } = made.sandbox;
  expect(recorded(cwd).map((record) => record.id)).toEqual([first.id, id]);
  expect(await list(cwd, asNeighbour)).toEqual([id]);
  expect(await list(cwd)).toEqual([first.id]);
  expect(recorded(cwd).map((record) => record.id)).toEqual([first.id, id]);
  // The end of one of them is no end of the other.
  await user.json(["rm", "--yes"], { cwd, env: asNeighbour });
  expect(recorded(cwd).map((record) => record.id)).toEqual([first.id]);
});

it("[CL16] a state file of an earlier version is read, forgets nothing for others, and learns whose it is", async () => {
  const cwd = user.repo("older", "https://example.com/team/older.git");
  const { id } = await user.startSandbox(cwd);
  const upgraded = recorded(cwd);
  withoutOrigin(cwd);
  const older = readState(cwd);
  const result = await user.berth(["list"], { cwd, env: asNeighbour });
  expect(result.stderr).toBe(
    "Not shown: 1 sandbox of another server or tenant, known from `.berth/state.json`.\nNo sandboxes.\n",
  );
  expect(readState(cwd)).toBe(older);
  expect(await list(cwd)).toEqual([id]);
  expect(recorded(cwd)).toEqual(upgraded);
  withoutOrigin(cwd);
  expect((await user.berth(["start"], { cwd })).stderr).toBe("");
  expect(recorded(cwd)).toEqual(upgraded);
});
