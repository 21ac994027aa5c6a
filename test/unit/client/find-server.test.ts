import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readLocalServer } from "../../../src/client/find-server.ts";
import { connect } from "../../../src/client/index.ts";

const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
const stat = readFileSync("/proc/self/stat", "utf8");
const startTime = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
const record = { url: "http://127.0.0.1:1", key: "/data/key", pid: process.pid, startTime, boot };

/** Reads these files, and what this machine says about processes. */
function find(files: Record<string, object | string>, env: Record<string, string>) {
  const readFile = (path: string) => {
    if (path.startsWith("/proc/")) return readFileSync(path, "utf8");
    const content = files[path];
    if (content === undefined) throw new Error(`ENOENT: ${path}`);
    return typeof content === "string" ? content : JSON.stringify(content);
  };
  return readLocalServer(readFile, (name) => env[name]);
}

const files = { "/run/me/berth/server.json": record, "/data/key": "the key\n" };

describe("the server of this user", () => {
  it("[SD17] is the one whose record is of a process that still runs", () => {
    const found = { url: "http://127.0.0.1:1", key: "the key" };
    expect(find(files, { XDG_RUNTIME_DIR: "/run/me" })).toEqual(found);
    expect(find(files, { HOME: "/root" })).toBeUndefined();
    const home = { "/root/.config/berth/server.json": record, "/data/key": "the key" };
    expect(find(home, { XDG_RUNTIME_DIR: "/run/me", HOME: "/root" })).toEqual(found);
  });

  it.each([
    ["another process with its PID", { startTime: "1" }],
    ["a process that has ended", { pid: 4_194_305 }],
    ["an earlier run of the machine", { boot: "another" }],
    ["nothing known", { url: 5 }],
  ])("[SD17] is not that of a record of %s", (_, change) => {
    const stale = { ...files, "/run/me/berth/server.json": { ...record, ...change } };
    expect(find(stale, { XDG_RUNTIME_DIR: "/run/me" })).toBeUndefined();
  });

  it("[SD17] keeps its key from any other address, and a missing address or key is named", () => {
    expect(() => connect({ url: "http://127.0.0.1:9", key: "" })).toThrow(/no key is known/);
    expect(() => connect({ url: "http://127.0.0.1:9/v1", key: "k" })).toThrow(/without \/v1/);
  });
});
