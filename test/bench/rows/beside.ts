/**
 * Owns the row of comparisons with programs that others know, in turns in one run: the locks of etcd and Redis, the commands,
 * terminal and bytes of sshd. Only by hand; what is not installed is left out, loudly.
 * Does not own those programs (test/bench/beside/).
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Berth } from "../berth.ts";
import { berthLock } from "../beside/berth-lock.ts";
import { etcdLock } from "../beside/etcd.ts";
import { compareLocks, type Lock } from "../beside/lock.ts";
import { found } from "../beside/program.ts";
import { redisLock } from "../beside/redis.ts";
import { Ssh } from "../beside/ssh.ts";
import { download, upload } from "../bytes.ts";
import { type Bench, type Figure, median, round, spread } from "../figure.ts";
import { TerminalViewer } from "../terminal.ts";

const bytes = 200_000_000;
const echoes = ["sh", "-c", "cat >/dev/null"];
const key = new Uint8Array([0x78]);
const hangMs = 30_000;

export async function beside(bench: Bench): Promise<Figure[]> {
  const berth = await Berth.start(bench);
  const id = await berth.create();
  const locks: Lock[] = [berthLock(berth, id)];
  const figures: Figure[] = [];
  const etcd = found("etcd");
  const redis = found("redis-server");
  const sshd = found("sshd");
  if (etcd === undefined) figures.push(skipped("etcd", "etcd-server"));
  else locks.push(await etcdLock(bench, etcd));
  if (redis === undefined) figures.push(skipped("Redis", "redis-server"));
  else locks.push(await redisLock(bench, redis));
  if (locks.length > 1) figures.push(...(await compareLocks(bench, locks)));
  if (sshd === undefined) figures.push(skipped("sshd", "openssh-server openssh-client"));
  else figures.push(...(await besideSsh(bench, berth, id, await Ssh.start(bench, sshd))));
  return figures;
}

function skipped(name: string, packages: string): Figure {
  const text = `SKIPPED, not installed: apt-get install --no-install-recommends ${packages}`;
  process.stderr.write(`beside ${name}: ${text}\n`);
  return { row: `beside ${name}`, measured: text, raw: {} };
}

async function besideSsh(bench: Bench, berth: Berth, id: string, ssh: Ssh): Promise<Figure[]> {
  const call = JSON.stringify({ command: "true" });
  const execs = await inTurns(
    bench,
    "commands, turn",
    { turns: bench.isShort ? 3 : 20, each: 10 },
    {
      ours: async () => void (await berth.exec(id, call)),
      kept: () => ssh.run("true", true),
      fresh: () => ssh.run("true"),
    },
  );
  const bearer = `Bearer ${readFileSync(join(berth.data, "key"), "utf8").trim()}`;
  const headers = { authorization: bearer };
  const typed = { ...headers, "content-type": "application/octet-stream" };
  const url = `${berth.http.url}/v1/sandboxes/${id}/files?path=large`;
  const path = join(ssh.folder, "large");
  const whole = (came: number) => {
    if (came !== bytes) throw new Error(`${came} bytes came of ${bytes}`);
  };
  const rounds = { turns: bench.isShort ? 1 : 5, each: 1 };
  const up = await inTurns(bench, "200 MB up, turn", rounds, {
    ours: () => upload(url, { method: "PUT", bytes, headers: typed }),
    theirs: () => ssh.upload(path, bytes),
  });
  const down = await inTurns(bench, "200 MB down, turn", rounds, {
    ours: async () => whole(await download(url, headers)),
    theirs: async () => whole(await ssh.download(path)),
  });
  const rate = (ms: number) => `${(bytes / 1000 / ms).toFixed(0)} MB/s`;
  const time = (ms: number) => `${ms.toFixed(2)} ms`;
  return [
    compared("exec of `true`, kept connection: median", execs.ours, execs.kept, time),
    compared("exec of `true`, new connection: median", execs.ours, execs.fresh, time),
    compared("a file of 200 MB up", up.ours, up.theirs, rate),
    compared("a file of 200 MB down", down.ours, down.theirs, rate),
    await echo(bench, berth, id, ssh),
  ];
}

async function echo(bench: Bench, berth: Berth, id: string, ssh: Ssh): Promise<Figure> {
  const path = `/v1/sandboxes/${id}/terminals`;
  const { status, text } = await berth.http.call("POST", path, JSON.stringify({ argv: echoes }));
  if (status !== 201) throw new Error(`a terminal answered ${status}: ${text}`);
  const { id: terminal } = JSON.parse(text) as { id: string };
  const viewer = await TerminalViewer.open(berth.http, `${path}/${terminal}/connect`, false);
  const child = ssh.terminal("cat >/dev/null");
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error("ssh has no streams");
  const typed = () =>
    new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error("ssh's terminal is silent")), hangMs);
      const hear = (chunk: Buffer) => {
        if (chunk.at(-1) !== key[0]) return;
        clearTimeout(timer);
        stdout.off("data", hear);
        resolve();
      };
      stdout.on("data", hear);
      stdin.write(key);
    });
  try {
    const times = await inTurns(
      bench,
      "keystrokes, turn",
      { turns: bench.isShort ? 4 : 20, each: 25 },
      {
        ours: async () => {
          const seen = viewer.seen((chunk) => chunk.at(-1) === key[0]);
          viewer.type(key);
          await seen;
        },
        theirs: typed,
      },
    );
    const ms = (value: number) => `${value.toFixed(2)} ms`;
    return compared("echo of a keystroke: median", times.ours, times.theirs, ms);
  } finally {
    await viewer.close();
    child.kill("SIGTERM");
  }
}

type Turns = { turns: number; each: number };

/** The times of each, in ms; the first turn warms up. */
async function inTurns<Name extends string>(
  bench: Bench,
  what: string,
  { turns, each }: Turns,
  work: Record<Name, () => Promise<void>>,
): Promise<Record<Name, number[]>> {
  const names = Object.keys(work) as Name[];
  const taken = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<
    Name,
    number[]
  >;
  for (let turn = -1; turn < turns; turn += 1) {
    bench.progress.of(turn + 1, turns, what);
    for (const name of names) {
      for (let at = 0; at < each; at += 1) {
        const begun = performance.now();
        await work[name]();
        if (turn >= 0) taken[name].push(performance.now() - begun);
      }
    }
  }
  return taken;
}

function compared(
  what: string,
  ours: number[],
  theirs: number[],
  shown: (ms: number) => string,
): Figure {
  return {
    row: `beside sshd: ${what}`,
    measured: `${shown(median(ours))} against ${shown(median(theirs))}`,
    ratio: round(median(ours) / median(theirs)),
    raw: { ours: spread(ours), theirs: spread(theirs) },
  };
}
