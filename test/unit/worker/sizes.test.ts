import { createHash } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { type Env, readConfig } from "../../../src/config.ts";
import { parseSizes } from "../../../src/protocol/fields/size.ts";
import { createApp } from "../../../src/worker/app.ts";

const key = "berth_of_the_size_tests";
const sizes =
  "vm:instance=basic few:processes=64 tight:memoryMib=256 both:instance=lite,memoryMib=128,processes=32";
const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** The health of an engine that can keep these bounds. */
async function engine(memoryLimit: boolean, processLimit: boolean): Promise<string> {
  const isolation = {
    ...{ engine: "embedded", user: "own", files: "overlay", processes: "namespace" },
    ...{ network: "none", tree: "cgroup", diskLimit: false, memoryLimit, processLimit },
  };
  const server = createServer((_request, answer) => {
    answer.setHeader("content-type", "application/json");
    answer.end(
      JSON.stringify({
        ...{ containers: 0, containersMax: 1, isolation, missing: [] },
        disk: { freeBytes: 2, floorBytes: 1, isFull: false },
        processes: [],
      }),
    );
  });
  servers.push(server);
  await new Promise<void>((listens) => server.listen(0, "127.0.0.1", listens));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The response to a create with this size, and how often the Directory was called. */
async function create(size: string, engineUrl?: string) {
  let directoryCalls = 0;
  const env = {
    BERTH_API_KEYS: `local:${createHash("sha256").update(key).digest("hex")}`,
    BERTH_SECRET: "the secret of the size tests, which guards nothing",
    BERTH_SIZES: sizes,
    ...(engineUrl === undefined
      ? {}
      : { BERTH_ENGINE_URL: engineUrl, BERTH_ENGINE_SECRET: "of no engine" }),
    DIRECTORY: {
      getByName: () => ({
        find: async () => {
          directoryCalls++;
          return { ok: { made: true, sandbox: { id: "of-the-test", state: "paused" } } };
        },
      }),
    },
  } as unknown as Env;
  const context = { waitUntil: () => {}, passThroughOnException: () => {} } as never;
  const request = new Request("http://berth.test/v1/sandboxes", {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ size, start: false }),
  });
  const answer = await createApp().fetch(request, env, context);
  const { error } = (await answer.json()) as { error?: { code: string; field: string } };
  return { status: answer.status, code: error?.code, field: error?.field, directoryCalls };
}

const made = { status: 201, code: undefined, field: undefined, directoryCalls: 1 };
const refused = { status: 501, code: "unsupported", field: "size", directoryCalls: 0 };

describe("sizes", () => {
  it("[S22] that the host cannot enforce are refused without addressing an object", async () => {
    expect(await create("vm")).toEqual(made);
    expect(await create("both")).toEqual(made);
    expect(await create("few")).toEqual(refused);
    const able = await engine(true, true);
    expect(await create("tight", able)).toEqual(made);
    expect(await create("both", able)).toEqual(made);
    expect(await create("vm", able)).toEqual(refused);
    const processesOnly = await engine(false, true);
    expect(await create("few", processesOnly)).toEqual(made);
    expect(await create("tight", processesOnly)).toEqual(refused);
    expect(await create("both", processesOnly)).toEqual(refused);
    expect(await create("few", await engine(false, false))).toEqual(refused);
  });

  it("[S23] are parsed from one line: instance types of Cloudflare and limits of the engine", () => {
    expect([...parseSizes("").keys()]).toEqual([]);
    const read = parseSizes(" a:instance=standard-2,memoryMib=4096\n own:instance=2/8192/16000 ");
    expect(Object.fromEntries(read)).toEqual({
      a: { name: "a", instance: "standard-2", memoryBytes: 4096 * 1024 * 1024 },
      own: { name: "own", instance: { vcpu: 2, memoryMib: 8192, diskMb: 16000 } },
    });
  });

  it.each([
    ["small", /small: must begin with a name of its own and a colon/],
    ["A:processes=64", /A:processes=64: must begin with a name/],
    ["a:processes=64 a:processes=65", /a:processes=65: must begin with a name of its own/],
    ["a:", /a: /],
    ["a:instance=5/12288/100", /vcpu must be 1 to 4/],
    ["a:instance=2/4096/100", /memory must be 6144 to 12288 MiB/],
    ["a:instance=1/4096/30000", /disk must be 1 to 20000 MB/],
    ["a:instance=huge", /a: instance must be one of the platform's/],
    ["a:memoryMib=1", /a: memoryMib .*64/],
    ["a:memoryMib=64.5", /a: memoryMib /],
    ["a:processes=1e9", /a: processes .*100000/],
    ["a:cpus=2", /a: .*cpus/],
  ])("[S23] [CF13] %s is refused with a message that names the entry", (text, words) => {
    expect(() => parseSizes(text)).toThrow(words);
    const env = { BERTH_SECRET: "x".repeat(40), BERTH_SIZES: text } as unknown as Env;
    expect(() => readConfig(env)).toThrow(/^BERTH_SIZES must be a list of /);
  });
});
