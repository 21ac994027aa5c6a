/**
 * Tests that the SDK follows events, files and clones over lost connections, against a real Berth.
 */
import { expect, test } from "vitest";
import { connect, type SandboxEvent, type TenantEvent } from "../../../src/client/index.ts";
import { connectScripted, respondEvents } from "../../unit/client/scripted-server.ts";
import { sharedServerOfFile } from "../shared-server.ts";
import { CutProxy } from "./cut-proxy.ts";

const server = await sharedServerOfFile();
const directBerth = connect(server);

const changesMax = 30;

async function collect<Event>(events: AsyncIterable<Event>): Promise<Event[]> {
  const all: Event[] = [];
  for await (const event of events) all.push(event);
  return all;
}

test("[LV25] events of a sandbox are followed over cut connections until it is destroyed", async () => {
  await using proxy = await CutProxy.to(server.url);
  const { id } = await directBerth.create({ start: false });
  const sandbox = connect({ url: proxy.url, key: server.key }).sandbox(id);
  const seen: SandboxEvent[] = [];
  const connections: string[] = [];
  let cuts = 0;
  const direct = directBerth.sandbox(id);
  let changes = 0;
  const options = { onConnection: (state: string) => connections.push(state) };
  for await (const event of sandbox.events(options)) {
    seen.push(event);
    if (cuts < 3 && seen.length % 8 === 0) {
      cuts += 1;
      if (cuts === 2) proxy.cutSilently();
      else proxy.cut();
    }
    // The next change happens only now, so it is never among the events before a cut.
    changes += 1;
    if (changes <= changesMax) await direct.metadata.patch({ n: `${changes}` });
    if (changes === changesMax + 1) await direct.delete();
  }
  const events = await collect(directBerth.sandbox(id).events({ follow: false }));
  expect(events.length).toBeGreaterThan(changesMax);
  expect(seen).toEqual(events);
  expect(cuts).toBe(3);
  expect(connections).toEqual(["lost", "back", "lost", "back", "lost", "back"]);
  // A destroyed sandbox has no more events to wait for.
  const late: SandboxEvent[] = [];
  for await (const event of sandbox.events({ after: events.length - 1 })) late.push(event);
  expect(late).toEqual(seen.slice(-1));
  expect(proxy.open).toBeLessThanOrEqual(1);
});

test("[LV25] events of a tenant are followed over cut connections until the reader stops", async () => {
  await using proxy = await CutProxy.to(server.url);
  const berth = connect({ url: proxy.url, key: server.key });
  const creating = Array.from({ length: 5 }, () => directBerth.create({ start: false }));
  const ids = new Set((await Promise.all(creating)).map(({ id }) => id));
  const changing = (async () => {
    for (const id of ids) {
      for (let n = 0; n < 4; n++) await directBerth.sandbox(id).metadata.patch({ n: `${n}` });
      await directBerth.sandbox(id).delete();
    }
  })();
  const seen: TenantEvent[] = [];
  const ended = new Set<string>();
  for await (const event of berth.events()) {
    seen.push(event);
    if (seen.length === 6 || seen.length === 15) proxy.cut();
    if (event.type !== "event" || event.event.type !== "state") continue;
    if (event.event.state === "destroyed" && ids.has(event.sandbox)) ended.add(event.sandbox);
    if (ended.size === ids.size) break;
  }
  await changing;
  const all = await collect(directBerth.events({ follow: false }));
  expect(seen).toEqual(all.slice(0, seen.length));
  expect(seen.length).toBeGreaterThanOrEqual(15);
  expect(proxy.cuts).toBeGreaterThan(0);
});

test("[LV25] a gap is reported, the cursor continues after it, and a missing sandbox throws", async () => {
  const eventText = (seq: number) =>
    `id: ${seq}\nevent: tokens\ndata: ${JSON.stringify({ seq, at: "then", event: {} })}\n\n`;
  const { sdk, server: scripted } = await connectScripted([
    respondEvents(`event: gap\ndata: {}\n\n${eventText(7)}${eventText(8).slice(0, -9)}`),
    respondEvents(`${eventText(8)}event: over\ndata: {}\n\n`),
  ]);
  const seen: SandboxEvent[] = [];
  for await (const event of sdk.sandbox("a").events({ after: 3 })) seen.push(event);
  const order = seen.map((event) => (event.type === "gap" ? `gap ${event.after}` : event.seq));
  expect(order).toEqual(["gap 3", 7, 8]);
  expect(scripted.requests.map(({ path }) => path)).toEqual([
    "/v1/sandboxes/a/events?after=3&follow=1",
    "/v1/sandboxes/a/events?after=7&follow=1",
  ]);
  const unknown = directBerth.sandbox("nobody");
  const following = unknown.events()[Symbol.asyncIterator]();
  await expect(following.next()).rejects.toMatchObject({ code: "not_found" });
  const controller = new AbortController();
  const { id } = await directBerth.create({ start: false });
  const own = directBerth.sandbox(id);
  const reading = (async () => {
    for await (const _ of own.events({ signal: controller.signal }))
      controller.abort(new Error("enough"));
  })();
  await expect(reading).rejects.toThrow("enough");
});

test("[LV26] files are followed over a cut, reported as `missed`, until their folder is removed", async () => {
  await using proxy = await CutProxy.to(server.url);
  const { id } = await directBerth.create({ waitMs: 20_000 });
  const direct = directBerth.sandbox(id);
  await direct.files.mkdir("seen");
  const sandbox = connect({ url: proxy.url, key: server.key }).sandbox(id);
  const seen: string[] = [];
  const next: Record<string, () => unknown> = {
    ready: () => direct.files.write("seen/one", new Uint8Array([1])),
    "/workspace/seen/one": () => proxy.cut(),
    missed: () => direct.files.write("seen/two", new Uint8Array([2])),
    "/workspace/seen/two": () => direct.files.delete("seen", { recursive: true }),
  };
  for await (const event of sandbox.files.watch("seen")) {
    const names = event.type === "changes" ? event.changes.map(({ path }) => path) : [event.type];
    for (const name of names) {
      if (!seen.includes(name)) await next[name]?.();
      seen.push(name);
    }
  }
  const order = [...new Set(seen)];
  const first = ["ready", "/workspace/seen/one", "missed", "/workspace/seen/two"];
  expect(order.slice(0, 4)).toEqual(first);
  expect(order.at(-1)).toBe("gone");
});

test("[LV27] a clone reports progress and its result; a failure of git throws, and so does a cut", async () => {
  const { id } = await directBerth.create({ waitMs: 20_000 });
  const sandbox = directBerth.sandbox(id);
  const made = await sandbox.exec({
    command:
      "git init -q -b main origin && cd origin && echo 1 > a && git add a && git -c user.name=a -c user.email=a@b commit -qm one && git rev-parse HEAD",
  });
  const phases: string[] = [];
  const cloned = await sandbox.git.clone(
    { url: "file:///workspace/origin", dir: "copy" },
    { progress: ({ phase }) => phases.push(phase) },
  );
  expect(cloned).toEqual({ dir: "/workspace/copy", commit: made.stdout.trim(), branch: "main" });
  expect(phases.every((phase) => phase !== "")).toBe(true);
  const none = sandbox.git.clone({ url: "file:///workspace/nowhere" });
  await expect(none).rejects.toMatchObject({ name: "BerthError" });
  await sandbox.delete();
  const part = 'event: progress\ndata: {"phase":"Receiving objects","percent":10}\n\n';
  const responders = [respondEvents(part), respondEvents(part, "broken")];
  const { sdk, server: scripted } = await connectScripted(responders);
  for (let n = 1; n <= 2; n++) {
    const reported: unknown[] = [];
    const progress = (current: unknown) => reported.push(current);
    const broken = sdk.sandbox("a").git.clone({ url: "https://git.example/one" }, { progress });
    await expect(broken).rejects.toMatchObject({ code: "operation_interrupted" });
    expect(reported).toEqual([{ phase: "Receiving objects", percent: 10 }]);
    expect(scripted.requests).toHaveLength(n);
  }
});
