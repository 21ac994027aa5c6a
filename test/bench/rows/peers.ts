/**
 * Compares Berth with well-known programs, in turns in one run: the locks of etcd and Redis; the commands, terminal
 * and transfers of sshd. It runs only if named, and reports programs that are not installed.
 */
import { join } from "node:path";
import { Berth } from "../berth.ts";
import { type Bench, comparison, type Figure } from "../figure.ts";
import { berthLock, compareLocks, type Lock } from "../lock.ts";
import { inTurns, timed } from "../measure.ts";
import { etcdLock } from "../peers/etcd.ts";
import { findProgram } from "../peers/program.ts";
import { redisLock } from "../peers/redis.ts";
import { Ssh } from "../peers/ssh.ts";
import { echoArgv, key, TerminalViewer } from "../terminal.ts";

const bytes = 200_000_000;
const hangMs = 30_000;

export async function peers(bench: Bench): Promise<Figure[]> {
  const berth = await Berth.start(bench);
  const id = await berth.create();
  const locks: Lock[] = [berthLock(berth.http, id)];
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
  const execs = await inTurns(
    bench,
    "commands, turn",
    { turns: bench.isShort ? 3 : 20, each: 10, warmUps: 1 },
    {
      berth: () => timed(() => berth.exec(id, call)),
      shared: () => timed(() => ssh.run("true", true)),
      fresh: () => timed(() => ssh.run("true")),
    },
  );
  const { http } = berth;
  const large = `/v1/sandboxes/${id}/files?path=large`;
  const path = join(ssh.folder, "large");
  const rounds = { turns: bench.isShort ? 1 : 5, warmUps: 1 };
  const up = await inTurns(bench, "200 MB up, turn", rounds, {
    berth: () => timed(() => http.upload(large, bytes)),
    ssh: () => timed(() => ssh.upload(path, bytes)),
  });
  const down = await inTurns(bench, "200 MB down, turn", rounds, {
    berth: () => timed(() => http.download(large, bytes)),
    ssh: () => timed(() => ssh.download(path, bytes)),
  });
  const format = (ms: number) => `${(bytes / 1000 / ms).toFixed(0)} MB/s`;
  const { berth: own, shared, fresh } = execs;
  const row = (what: string) => `against sshd: ${what}`;
  return [
    comparison(row("exec of `true`, kept connection: median"), { berth: own, ssh: shared }),
    comparison(row("exec of `true`, new connection: median"), { berth: own, ssh: fresh }),
    comparison(row("a file of 200 MB up"), up, { format }),
    comparison(row("a file of 200 MB down"), down, { format }),
    comparison(row("echo of a keystroke: median"), await echoTimes(bench, berth, id, ssh)),
  ];
}

async function echoTimes(bench: Bench, berth: Berth, id: string, ssh: Ssh) {
  const path = `/v1/sandboxes/${id}/terminals`;
  const terminal = await berth.http.json<{ id: string }>("POST", path, { argv: echoArgv });
  const viewer = await TerminalViewer.open(berth.http, `${path}/${terminal.id}/connect`, false);
  const child = ssh.terminal("cat >/dev/null");
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error("ssh has no streams");
  const type = () =>
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
    return await inTurns(
      bench,
      "keystrokes, turn",
      { turns: bench.isShort ? 4 : 20, each: 25, warmUps: 1 },
      { berth: () => viewer.echoMs(key), ssh: () => timed(type) },
    );
  } finally {
    await viewer.close();
    child.kill("SIGTERM");
  }
}
