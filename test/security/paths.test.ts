/** Every call that takes a path, each spelling of one that leads out of the sandbox: nothing is read, changed or made there. */
import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { archive } from "../agent/archive/tar-maker.ts";
import { Attacked, get, post, put, type Sent } from "./attacked-server.ts";

const words = "words of the machine that no sandbox may read";
const bytes = "application/octet-stream";
const tar = "application/x-tar";

type Verb = [name: string, call: (path: string) => Sent];

const encoded = (path: string) => encodeURIComponent(path);

const reading: Verb[] = [
  ["read", (path) => get(`/files?path=${encoded(path)}`)],
  ["stat", (path) => get(`/files/stat?path=${encoded(path)}`)],
  ["list", (path) => get(`/files/list?path=${encoded(path)}`)],
  ["watch", (path) => ({ ...get(`/files/watch?path=${encoded(path)}`), leaves: true })],
  ["download", (path) => get(`/archive?path=${encoded(path)}`)],
];

const throughLink = (path: string) =>
  archive(
    { name: "way", type: "2", says: path },
    { name: "way/secret", body: "theirs" },
    { name: `way/../../../../../..${path}`.slice(0, 100), body: "theirs" },
  );
const secretFile = archive({ name: "secret", body: "theirs" });
const repository = "file:///workspace/repository";

const writing: Verb[] = [
  ["move from", (from) => post("/files/move", { from, to: "taken", overwrite: true })],
  ["remove", (path) => ({ method: "DELETE", path: `/files?path=${encoded(path)}&recursive=1` })],
  ["write", (path) => put(`/files?path=${encoded(path)}`, bytes, "theirs")],
  [
    "write below",
    (path) => put(`/files?path=${encoded(`${path}/deep/file`)}&mkdirs=1`, bytes, "theirs"),
  ],
  ["make a folder", (path) => post("/files/mkdir", { path: `${path}/folder`, parents: true })],
  ["move to", (to) => post("/files/move", { from: "spare", to, overwrite: true })],
  ["upload", (path) => put(`/archive?path=${encoded(path)}`, tar, secretFile)],
  ["upload a link and through it", (path) => put("/archive?path=uploads", tar, throughLink(path))],
  ["clone", (dir) => post("/git/clone", { url: repository, dir })],
];

describe("a path that leads out of a sandbox", () => {
  /** A folder of the machine that every user may read: only the isolation of the sandbox protects it. */
  const planted = mkdtempSync(join(tmpdir(), "berth-planted-"));
  const berth = Attacked.shared();
  let id: string;
  let neighbours: string;
  let before: unknown;

  beforeAll(async () => {
    writeFileSync(join(planted, "secret"), words);
    id = await berth.create();
    const neighbour = await berth.create();
    await berth.exec(neighbour, { command: `printf %s '${words}' > of-a-neighbour` });
    const engine = join(berth.server.data, "engine");
    const found = readdirSync(engine, { recursive: true }).map(String);
    neighbours = join(engine, found.find((name) => name.endsWith("of-a-neighbour")) ?? "");
    expect(readFileSync(neighbours, "utf8")).toBe(words);
    before = machine();
  });

  afterAll(() => rmSync(planted, { recursive: true }));

  const of = (tail = "") => `/v1/sandboxes/${id}${tail}`;
  const send = async ([name, call]: Verb, path: string) => {
    const sent = call(path);
    const { status, text } = await berth.send({ ...sent, path: of(sent.path) });
    expect(text, `${name} ${path}`).not.toContain(words);
    expect(text, `${name} ${path}`).not.toContain(berth.server.key);
    return status;
  };
  /** A workspace as the attacks find it. */
  const renew = (links: string) =>
    berth.exec(id, {
      command: `rm -rf /workspace/* /workspace/.[!.]* ${planted} ${berth.server.data}; echo spare > spare; git init -q repository; ${links}`,
    });
  /** What of the machine an attack could have changed, times and inodes included. */
  const machine = () =>
    [planted, join(planted, "secret"), join(berth.server.data, "key"), neighbours].map((path) => {
      const { ino, mode, uid, nlink, mtimeMs, ctimeMs } = lstatSync(path);
      const holds = path === planted ? readdirSync(path) : readFileSync(path, "utf8");
      return { path, ino, mode, uid, nlink, mtimeMs, ctimeMs, holds };
    });

  it("[SC12] the calls below do read and write what is the sandbox's own", async () => {
    await renew("mkdir own; echo text > own/file");
    for (const verb of reading) {
      const path = ["list", "watch"].includes(verb[0]) ? "own" : "own/file";
      expect(await send(verb, path), verb[0]).toBe(200);
    }
    for (const verb of writing) {
      await renew("mkdir own uploads; git -C repository commit -q --allow-empty -m a");
      const path = /(move to|upload|clone)$/.test(verb[0]) ? "new" : "own";
      const status = await send(verb, verb[0] === "write" ? "own/file" : path);
      // Through a link of its own nothing is unpacked either.
      const well = verb[0].includes("through") ? 400 : expect.toSatisfy((status) => status < 300);
      expect(status, verb[0]).toEqual(well);
    }
  });

  const up = "../".repeat(20);
  it.each<[string, (path: string) => string, string]>([
    ["by its name", (path) => path, ""],
    ["by steps up", (path) => `${up}${path.slice(1)}`, ""],
    ["by steps up from a folder", (path) => `/workspace/${up}${path.slice(1)}`, ""],
    ["by a link to the root", (path) => `root${path}`, "ln -s / root"],
    ["by a link to its folder", () => `folder/secret`, `ln -s ${planted} folder`],
    ["by a link that climbs", (path) => `climb${path}`, `ln -s ${up} climb`],
  ])("[SC12] %s: what it names on the machine is not there", async (_how, spelled, links) => {
    for (const target of [join(planted, "secret"), join(berth.server.data, "key"), neighbours]) {
      await renew(links);
      for (const verb of reading) expect([403, 404]).toContain(await send(verb, spelled(target)));
      for (const verb of writing) {
        // What it makes at such a place is the sandbox's own, as a command would make it there.
        await renew(links);
        expect(await send(verb, spelled(target)), verb[0]).toBeLessThan(500);
        expect(machine()).toEqual(before);
      }
    }
  });

  it("[SC12] by links of every kind to a file: neither it nor the link's target is shown or changed", async () => {
    const links = `ln -s ${planted}/secret link; ln -s ${neighbours} next; ln -s link twice`;
    for (const path of ["link", "next", "twice"]) {
      await renew(links);
      // A link is looked at, and packed, as a link.
      for (const verb of reading.filter(([name]) => name !== "stat" && name !== "download"))
        expect([403, 404]).toContain(await send(verb, path));
      for (const verb of writing) {
        await renew(links);
        expect(await send(verb, path)).toBeLessThan(500);
        expect(machine()).toEqual(before);
      }
    }
  });

  it.each([
    ...[
      "/proc/1/environ",
      "/proc/1/mem",
      "/proc/1/fd/3",
      "/proc/self/environ",
      "/proc/self/status",
    ],
    ...["/proc/self/exe", "/proc/self/fd/0", "/proc/kcore", "/proc/sysrq-trigger", "/dev/mem"],
    ...["/proc/sys/kernel/core_pattern", "/dev/fd/0", "/etc/shadow", "/root/.ssh/id_rsa"],
    ...["/sys/kernel/notes", "/run/berth/metadata.json/../../../proc/1/environ", "fds/3"],
    ...["jump/etc/passwd", "jump/workspace/spare", "loop/x"],
  ])("[SC12] %s is refused to every call, by whatever name of the kernel it goes", async (path) => {
    await renew("ln -s /proc/1/root jump; ln -s /proc/self/fd fds; ln -s loop loop");
    for (const verb of [...reading, ...writing]) {
      expect([400, 403, 404], verb[0]).toContain(await send(verb, path));
    }
    expect(machine()).toEqual(before);
  });

  it("[I8] what every sandbox has stays with all that it holds: the root, mount points, home and workspace", async () => {
    const places = ["/tmp", "/run", "/dev/shm", "/dev", "/proc", "/home/berth", "/workspace", "/"];
    const held = ["/tmp", "/dev/shm", "/home/berth", "/workspace"];
    await renew(held.map((place) => `echo held > ${place}/held`).join("; "));
    for (const path of [...places, ".", "", "/workspace/", "/workspace/../tmp", "tmp"]) {
      if (path === "tmp") await berth.exec(id, { command: "ln -s /tmp tmp" });
      for (const verb of writing.filter(([name]) => name === "remove" || name === "move from")) {
        const status = await send(verb, path);
        // A link to one is the sandbox's own.
        const well = path === "tmp" ? [200, 404] : [400, 403];
        expect(well, `${verb[0]} ${path}`).toContain(status);
      }
    }
    const { stdout } = await berth.exec(id, {
      command: `cat ${held.map((place) => `${place}/held`).join(" ")}`,
    });
    expect(stdout).toBe("held\n".repeat(held.length));
  });
});
