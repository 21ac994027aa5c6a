/**
 * Compares Berth with well-known programs, in turns in one run: the locks of etcd and Redis; the commands, terminal
 * and transfers of sshd. It runs only if named, and reports programs that are not installed.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Berth } from "../berth.ts";
import { download, upload } from "../bytes.ts";
import { type Bench, type Figure, median, round, spread } from "../figure.ts";
import { berthLock } from "../peers/berth-lock.ts";
import { etcdLock } from "../peers/etcd.ts";
import { compareLocks, type Lock } from "../peers/lock.ts";
import { findProgram } from "../peers/program.ts";
import { redisLock } from "../peers/redis.ts";
import { Ssh } from "../peers/ssh.ts";
import { TerminalViewer } from "../terminal.ts";

const bytes = 200_000_000;
const echoes = ["sh", "-c", "cat >/dev/null"];
const key = new Uint8Array([0x78]);
const hangMs = 30_000;

export async function peers(bench: Bench): Promise<Figure[]> {
  const berth = await Berth.start(bench);
  const id = await berth.create();
  const locks: Lock[] = [berthLock(berth, id)];
  const figures: Figure[] = [];
  const etcd = findProgram("etcd");
  const redis = findProgram("redis-server");
  const sshd = findProgram("sshd");
  if (etcd === undefined) figures.push(skipped("etcd", "etcd-server"));
  else locks.push(await etcdLock(bench, etcd));
  if (redis === undefined) figures.push(skipped("Redis", "redis-server"));
  else locks.push(await redisLock(bench, redis));
  if (locks.length > 1) figures.push(...(await compareLocks(bench, locks)));
  if (sshd === undefined) figures.push(skipped("sshd", "openssh-server openssh-client"));
  else figures.push(...(await compareWithSsh(bench, berth, id, await Ssh.start(bench, sshd))));
  return figures;
}

function skipped(name: string, packages: string): Figure {
  const text = `SKIPPED, not installed. Run apt-get install --no-install-recommends ${packages}`;
  process.stderr.write(`against ${name}: ${text}\n`);
  return { row: `against ${name}`, measured: text, raw: {} };
}

async function compareWithSsh(bench: Bench, berth: Berth, id: string, ssh: Ssh): Promise<Figure[]> {
  const call = JSON.stringify({ command: "true" });
  const execs = await measureInTurns(
    bench,
    "commands, turn",
    { turns: bench.isShort ? 3 : 20, each: 10 },
    {
      berth: async () => void (await berth.exec(id, call)),
      shared: () => ssh.run("true", true),
      fresh: () => ssh.run("true"),
    },
  );
  const bearer = `Bearer ${readFileSync(join(berth.data, "key"), "utf8").trim()}`;
  const headers = { authorization: bearer };
  const uploadHeaders = { ...headers, "content-type": "application/octet-stream" };
  const url = `${berth.http.url}/v1/sandboxes/${id}/files?path=large`;
  const path = join(ssh.folder, "large");
  const requireAll = (received: number) => {
    if (received !== bytes) throw new Error(`received ${received} of ${bytes} bytes`);
  };
  const rounds = { turns: bench.isShort ? 1 : 5, each: 1 };
  const up = await measureInTurns(bench, "200 MB up, turn", rounds, {
    berth: () => upload(url, { method: "PUT", bytes, headers: uploadHeaders }),
    ssh: () => ssh.upload(path, bytes),
  });
  const down = await measureInTurns(bench, "200 MB down, turn", rounds, {
    berth: async () => requireAll(await download(url, headers)),
    ssh: async () => requireAll(await ssh.download(path)),
  });
  const rate = (ms: number) => `${(bytes / 1000 / ms).toFixed(0)} MB/s`;
  const time = (ms: number) => `${ms.toFixed(2)} ms`;
  return [
    comparison("exec of `true`, kept connection: median", execs.berth, execs.shared, time),
    comparison("exec of `true`, new connection: median", execs.berth, execs.fresh, time),
    comparison("a file of 200 MB up", up.berth, up.ssh, rate),
    comparison("a file of 200 MB down", down.berth, down.ssh, rate),
    await echo(bench, berth, id, ssh),
  ];
}

async function echo(bench: Bench, berth: Berth, id: string, ssh: Ssh): Promise<Figure> {
  const path = `/v1/sandboxes/${id}/terminals`;
  const { status, text } = await berth.http.call("POST", path, JSON.stringify({ argv: echoes }));
  if (status !== 201) throw new Error(`a terminal returned ${status}: ${text}`);
  const { id: terminal } = JSON.parse(text) as { id: string };
  const viewer = await TerminalViewer.open(berth.http, `${path}/${terminal}/connect`, false);
  const child = ssh.terminal("cat >/dev/null");
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error("ssh has no streams");
  const typed = () =>
    new Promise<void>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error("ssh's terminal sent nothing in time")),
        hangMs,
      );
      const onData = (chunk: Buffer) => {
        if (chunk.at(-1) !== key[0]) return;
        clearTimeout(timer);
        stdout.off("data", onData);
        resolve();
      };
      stdout.on("data", onData);
      stdin.write(key);
    });
  try {
    const times = await measureInTurns(
      bench,
      "keystrokes, turn",
      { turns: bench.isShort ? 4 : 20, each: 25 },
      {
        berth: async () => {
          const seen = viewer.seen((chunk) => chunk.at(-1) === key[0]);
          viewer.type(key);
          await seen;
        },
        ssh: typed,
      },
    );
    const ms = (value: number) => `${value.toFixed(2)} ms`;
    return comparison("echo of a keystroke: median", times.berth, times.ssh, ms);
  } finally {
    await viewer.close();
    child.kill("SIGTERM");
  }
}

type Turns = { turns: number; each: number };

/** Returns the times of each action in ms; the first turn is a warm-up. */
async function measureInTurns<Name extends string>(
  bench: Bench,
  what: string,
  { turns, each }: Turns,
  actions: Record<Name, () => Promise<void>>,
): Promise<Record<Name, number[]>> {
  const names = Object.keys(actions) as Name[];
  const times = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<
    Name,
    number[]
  >;
  for (let turn = -1; turn < turns; turn += 1) {
    bench.progress.of(turn + 1, turns, what);
    for (const name of names) {
      for (let index = 0; index < each; index += 1) {
        const startedAt = performance.now();
        await actions[name]();
        if (turn >= 0) times[name].push(performance.now() - startedAt);
      }
    }
  }
  return times;
}

function comparison(
  what: string,
  berth: number[],
  ssh: number[],
  format: (ms: number) => string,
): Figure {
  return {
    row: `against sshd: ${what}`,
    measured: `${format(median(berth))} against ${format(median(ssh))}`,
    ratio: round(median(berth) / median(ssh)),
    raw: { berth: spread(berth), ssh: spread(ssh) },
  };
}
