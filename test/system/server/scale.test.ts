import { randomInt } from "node:crypto";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parallel } from "../../bench/measure.ts";
import { alive, openFiles } from "../processes.ts";
import { type Server, startServer } from "../server.ts";

const wide = 16;

describe("load on one machine", () => {
  it("[O18] 1,000 commands in 16 parallel streams on one sandbox get 1,000 correct results", async () => {
    await using server = await startServer();
    const id = await server.create();
    const wrong: string[] = [];
    await parallel(1000, wide, async (index) => {
      const command = `echo out ${index}; echo err ${index} >&2; exit ${index % 7}`;
      const { status, body } = await server.exec(id, command);
      const right =
        status === 200 &&
        body.exitCode === index % 7 &&
        body.stdout === `out ${index}\n` &&
        body.stderr === `err ${index}\n`;
      if (!right) wrong.push(JSON.stringify({ at: index, status, body }));
    });
    expect(wrong).toEqual([]);
    await endsWhole(server);
  });

  it("[O19] fifty concurrent creates make fifty sandboxes, and each runs its own command", async () => {
    await using server = await startServer();
    const made = await Promise.all(
      Array.from({ length: 50 }, async (_, index) => {
        const { status, body } = await server.call("POST", "/v1/sandboxes", {});
        expect(status).toBe(201);
        const id = String(body.id);
        const ran = await server.exec(id, `ls; echo ${index} > mine; cat mine`);
        // Nothing of another sandbox lies in its workspace.
        expect(ran.body).toMatchObject({ exitCode: 0, stdout: `${index}\n` });
        return id;
      }),
    );
    expect(new Set(made).size).toBe(50);
    const ended = await Promise.all(made.map((id) => server.call("DELETE", `/v1/sandboxes/${id}`)));
    expect(ended.map(({ body }) => body.state)).toEqual(made.map(() => "destroyed"));
    const agents = server.processes().filter(({ command }) => command.includes("berth-agent"));
    expect(agents).toEqual([]);
    await endsWhole(server);
  });

  it("[O20] calls with 3,000 invented ids leave no file, no descriptor and no object", async () => {
    await using server = await startServer();
    const real = await server.create();
    const ask = (id: string) => server.call("GET", `/v1/sandboxes/${id}`);
    expect((await ask(real)).status).toBe(200);
    const before = objectsOf(server);
    expect(before.files.length).toBeGreaterThan(0);
    expect(before.descriptors).toBeGreaterThan(0);
    const statuses = await parallel(3000, wide, async () => (await ask(inventedId())).status);
    expect(new Set(statuses)).toEqual(new Set([404]));
    const after = objectsOf(server);
    expect(after.files).toEqual(before.files);
    expect(after.descriptors).toBeLessThanOrEqual(before.descriptors);
    // The count sees an object where one is addressed.
    const another = await server.create();
    expect(objectsOf(server).files.length).toBeGreaterThan(after.files.length);
    expect((await ask(another)).status).toBe(200);
    await endsWhole(server);
  });
});

/** While an object is awake it holds its files open. */
function objectsOf(server: Server) {
  const folder = join(server.data, "objects");
  const open = openFiles(server.workerd.pid).filter((path) => path.startsWith(folder));
  return { files: server.objectFiles(), descriptors: open.length };
}

/** An id in the form of a real one. */
function inventedId(): string {
  let id = "a";
  while (id.length < 24) id += randomInt(36).toString(36);
  return id;
}

async function endsWhole(server: Server): Promise<void> {
  const tree = server.processes();
  expect(await server.stop()).toMatchObject({ code: 0 });
  expect(alive(tree)).toEqual([]);
}
