/**
 * A small internet for tests: a server in a network namespace behind the machine, reached by a route. Only root can
 * create it.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { tools } from "../../container/launch/paths.js";

/** Four addresses of the documentation range, which nothing else uses; concurrent test files use different ones. */
const worker = Number(process.env.VITEST_POOL_ID ?? 0);
const first = 4 * ((worker % 4) * 16 + (process.pid % 16));
export const serverAddress = `198.51.100.${first + 2}`;
export const machineAddress = `198.51.100.${first + 1}`;

/** An address in the range of cloud metadata; concurrent test files use different ones. */
export const linkLocalAddress = (last: number) => `169.254.${first}.${last}`;

export type TestInternet = {
  port: number;
  /** Makes a server at another address and port of it, to which the machine gets a route. */
  serveAt(address: string, port: number): Promise<void>;
  close(): void;
};

export const canMakeInternet =
  process.getuid?.() === 0 && ["ip", "nsenter", "unshare"].every((it) => hasProgram(it));

export function hasProgram(name: string): boolean {
  return spawnSync("sh", ["-c", `command -v ${name}`]).status === 0;
}

/** Its server responds to every request with the address of the client. */
export async function makeInternet(): Promise<TestInternet> {
  const script = `
    process.stdin.once("data", () => {
      const server = require("node:http").createServer((q, a) => a.end(q.socket.remoteAddress));
      server.listen(0, "${serverAddress}", () => console.log(server.address().port));
    });
    process.stdin.on("end", () => process.exit());
    console.log("started");`;
  const child = spawn("unshare", ["--net", "--", tools.node, "-e", script], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  await lines.next();
  const name = `brtst${child.pid}`;
  const inside = ["nsenter", `--net=/proc/${child.pid}/ns/net`, "--"];
  ip("link", "add", name, "type", "veth", "peer", "name", "up0", "netns", String(child.pid));
  ip("addr", "add", `${machineAddress}/30`, "dev", name);
  ip("link", "set", name, "up");
  runOrThrow([...inside, "ip", "addr", "add", `${serverAddress}/30`, "dev", "up0"]);
  runOrThrow([...inside, "ip", "link", "set", "up0", "up"]);
  child.stdin.write("listen\n");
  const { value } = await lines.next();
  return {
    port: Number(value),
    serveAt: (address, port) => serveAt(child, name, address, port),
    close: () => end(child, name),
  };
}

async function serveAt(
  internet: ChildProcess,
  name: string,
  address: string,
  port: number,
): Promise<void> {
  const inside = ["nsenter", `--net=/proc/${internet.pid}/ns/net`, "--"];
  runOrThrow([...inside, "ip", "addr", "replace", `${address}/32`, "dev", "up0"]);
  ip("route", "replace", `${address}/32`, "dev", name);
  const script = `
    require("node:http").createServer((q, a) => a.end("served"))
      .listen(${port}, "${address}", () => console.log("listens"));
    process.stdin.on("end", () => process.exit()).resume();`;
  const [file = "", ...args] = [...inside, tools.node, "-e", script];
  const server = spawn(file, args, { stdio: ["pipe", "pipe", "inherit"] });
  internet.once("exit", () => server.stdin.end());
  await createInterface({ input: server.stdout })[Symbol.asyncIterator]().next();
}

function end(child: ChildProcess, name: string): void {
  child.stdin?.end();
  child.kill("SIGKILL");
  spawnSync("ip", ["link", "delete", name]);
}

function ip(...args: string[]): void {
  runOrThrow(["ip", ...args]);
}

function runOrThrow([file = "", ...args]: string[]): void {
  const result = spawnSync(file, args);
  if (result.status !== 0) throw new Error(`${file} ${args.join(" ")}: ${result.stderr}`);
}
