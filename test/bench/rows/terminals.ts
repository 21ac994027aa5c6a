/**
 * Measures terminals: a keystroke's echo against a bare PTY over a local WebSocket, its echo under a flood, and how fast
 * a flood of output arrives completely.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createInterface } from "node:readline";
import { paths, tools } from "../../../container/launch/paths.js";
import { startBothSides } from "../direct.ts";
import { type Bench, comparison, type Figure, inMs, median, round, spread } from "../figure.ts";
import { Http } from "../http.ts";
import { inTurns, megabytesPerSecond } from "../measure.ts";
import { echoArgv, key, TerminalViewer } from "../terminal.ts";

const echoRatioMax = 2.5;
const MB = 1_000_000;
const floodBytes = 100 * MB;
/** The longest line that is typed. */
const lineChars = 1000;
const enter = new Uint8Array([0x0d]);
const flood = `seq 1 99999999 | head -c ${floodBytes}`;
const size = { cols: 80, rows: 24 };
const endMs = 10_000;

export async function terminals(bench: Bench): Promise<Figure[]> {
  const { berth, path, direct } = await startBothSides(bench, 4);
  const bare = await startBarePty(bench, echoArgv);
  const through = { http: berth.http, path: `${path}/terminals` };
  const directSide = { http: direct, path: "/v1/terminals" };
  return [
    ...(await echo(bench, {
      bare: await TerminalViewer.open(bare, "/", false),
      agent: await openTerminal(directSide, "echo", echoArgv, false),
      plain: await openTerminal(through, "echo", echoArgv, false),
      withFrames: await openTerminal(through, "echo", echoArgv, true),
    })),
    await echoUnderFlood(bench, through),
    await floodRate(bench, "100 MB through a terminal, from the agent", directSide),
    await floodRate(bench, "100 MB through a terminal, through Berth", through),
  ];
}

/** Starts a bare PTY over a WebSocket (bare/pty.ts). */
async function startBarePty(bench: Bench, argv: string[]): Promise<Http> {
  const script = `${paths.root}/test/bench/bare/pty.ts`;
  const child = spawn(tools.bun, [script, ...argv], { stdio: ["pipe", "pipe", "ignore"] });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  bench.closes(async () => {
    const timer = setTimeout(() => child.kill("SIGKILL"), endMs);
    child.stdin.end();
    await ended;
    clearTimeout(timer);
  });
  for await (const line of createInterface({ input: child.stdout })) {
    return new Http(`http://127.0.0.1:${line}`);
  }
  throw new Error("the bare PTY did not start");
}

type Side = { http: Http; path: string };

async function openTerminal(
  { http, path }: Side,
  id: string,
  argv: string[],
  withFrames: boolean,
): Promise<TerminalViewer> {
  await http.ok("POST", path, { id, argv, ...size });
  return TerminalViewer.open(http, `${path}/${id}/connect`, withFrames);
}

type Viewers = Record<"bare" | "agent" | "plain" | "withFrames", TerminalViewer>;

async function echo(bench: Bench, viewers: Viewers): Promise<Figure[]> {
  const typingInto = (viewer: TerminalViewer) => {
    let typed = 0;
    return async () => {
      if (++typed % lineChars === 0) await viewer.echoMs(enter, 0x0a);
      return viewer.echoMs(key);
    };
  };
  const samples = await inTurns(
    bench,
    "keystrokes, block",
    { turns: bench.isShort ? 12 : 60, each: 25, warmUps: 4 },
    {
      bare: typingInto(viewers.bare),
      agent: typingInto(viewers.agent),
      plain: typingInto(viewers.plain),
      withFrames: typingInto(viewers.withFrames),
    },
  );
  for (const viewer of Object.values(viewers)) await viewer.close();
  const figure = (path: string, own: number[], judged: { ratioMax?: number }) =>
    comparison(
      `echo of a keystroke through ${path}, against a bare PTY`,
      { through: own, bare: samples.bare },
      judged,
    );
  return [
    figure("the agent", samples.agent, {}),
    figure("Berth", samples.plain, { ratioMax: echoRatioMax }),
    figure("Berth, with frames", samples.withFrames, { ratioMax: echoRatioMax }),
  ];
}

/** The program prints without end while the keys are typed; the kernel echoes them in between. */
async function echoUnderFlood(bench: Bench, side: Side): Promise<Figure> {
  const id = "echo-flood";
  const viewer = await openTerminal(side, id, ["yes", "yyyyyyyyyyyyyyy"], true);
  let read = 0;
  await viewer.seen((bytes) => {
    read += bytes.length;
    return read > 4 * MB;
  });
  const samples: number[] = [];
  for (let index = 0; index < (bench.isShort ? 10 : 30); index += 1) {
    // Neither is part of the sequences that redraw a screen.
    const typed = index % 2 === 0 ? 0x25 : 0x26;
    const typedAt = performance.now();
    const echoed = viewer.seen((bytes) => bytes.includes(typed));
    viewer.type(Uint8Array.of(typed));
    await echoed;
    samples.push(performance.now() - typedAt);
  }
  await viewer.close();
  await side.http.call("DELETE", `${side.path}/${id}`);
  return {
    row: "echo of a keystroke under a flood of output, through Berth: median",
    measured: inMs(1)(median(samples)),
    raw: { ms: spread(samples) },
  };
}

async function floodRate(bench: Bench, row: string, side: Side): Promise<Figure> {
  const rounds = bench.isShort ? 2 : 5;
  const expected = await digestOf(flood);
  const rates: number[] = [];
  for (let index = 0; index < rounds; index += 1) {
    bench.progress.of(index, rounds, row);
    const argv = ["sh", "-c", `stty raw -echo; echo ready; head -c 1 >/dev/null; ${flood}`];
    const viewer = await openTerminal(side, `flood${index}`, argv, true);
    let text = "";
    await viewer.seen((bytes) => {
      text += Buffer.from(bytes).toString();
      return text.includes("ready");
    });
    const hash = createHash("sha256");
    let read = 0;
    const receiveAll = async () => {
      const received = viewer.seen((bytes) => {
        hash.update(bytes);
        read += bytes.length;
        return read >= floodBytes;
      });
      viewer.type(key);
      await received;
    };
    rates.push(await megabytesPerSecond(floodBytes, receiveAll));
    if (hash.digest("hex") !== expected)
      throw new Error(`${row}: the output differs from what was written`);
    await viewer.closed;
  }
  return {
    row,
    measured: `complete, ${median(rates).toFixed(0)} MB/s`,
    target: "complete",
    met: true,
    raw: { rates: rates.map((rate) => round(rate, 1)) },
  };
}

async function digestOf(command: string): Promise<string> {
  const hash = createHash("sha256");
  const child = spawn("sh", ["-c", command], { stdio: ["ignore", "pipe", "ignore"] });
  for await (const bytes of child.stdout) hash.update(bytes);
  return hash.digest("hex");
}
