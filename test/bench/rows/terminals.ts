/**
 * Measures terminals: a keystroke's echo against a bare PTY over a local WebSocket, its echo under a flood, and how fast
 * a flood of output arrives completely.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { startBarePty } from "../bare-pty.ts";
import { Berth } from "../berth.ts";
import { DirectEngine } from "../direct.ts";
import { type Bench, type Figure, median, round, spread } from "../figure.ts";
import type { Http } from "../http.ts";
import { TerminalViewer } from "../terminal.ts";

const echoRatioMax = 2.5;
const MB = 1_000_000;
const floodBytes = 100 * MB;
/** The kernel echoes lines shorter than 4,096 characters; the program itself prints nothing. */
const echoes = ["sh", "-c", "cat >/dev/null"];
const lineChars = 1000;
const key = new Uint8Array([0x78]);
const enter = new Uint8Array([0x0d]);
const flood = `seq 1 99999999 | head -c ${floodBytes}`;

export async function terminals(bench: Bench): Promise<Figure[]> {
  const berth = await Berth.start(bench);
  const engine = await DirectEngine.start(bench);
  const bare = await startBarePty(bench, echoes);
  const id = await berth.create();
  const direct = await engine.create(4);
  const through = { http: berth.http, path: `/v1/sandboxes/${id}/terminals` };
  const directSide = { http: direct.http, path: "/v1/terminals" };
  return [
    ...(await echo(bench, {
      bare: await TerminalViewer.open(bare, "/", false),
      agent: await openTerminal(directSide, "echo", echoes, false),
      plain: await openTerminal(through, "echo", echoes, false),
      withFrames: await openTerminal(through, "echo", echoes, true),
    })),
    await echoUnderFlood(bench, through),
    await floodRate(bench, "100 MB through a terminal, from the agent", directSide),
    await floodRate(bench, "100 MB through a terminal, through Berth", through),
  ];
}

type Side = { http: Http; path: string };

async function openTerminal(
  { http, path }: Side,
  id: string,
  argv: string[],
  withFrames: boolean,
): Promise<TerminalViewer> {
  const { status, text } = await http.call("POST", path, JSON.stringify({ id, argv, ...size }));
  if (status !== 201 && status !== 200) throw new Error(`a terminal returned ${status}: ${text}`);
  return TerminalViewer.open(http, `${path}/${id}/connect`, withFrames);
}

const size = { cols: 80, rows: 24 };

type Viewers = Record<"bare" | "agent" | "plain" | "withFrames", TerminalViewer>;

async function echo(bench: Bench, viewers: Viewers): Promise<Figure[]> {
  const blocks = bench.isShort ? 12 : 60;
  const each = 25;
  const names = Object.keys(viewers) as (keyof Viewers)[];
  const samples = { bare: [], agent: [], plain: [], withFrames: [] } as Record<
    keyof Viewers,
    number[]
  >;
  let typed = 0;
  for (const name of names)
    for (let index = 0; index < 100; index += 1) await echoMs(viewers[name], key);
  for (let block = 0; block < blocks; block += 1) {
    bench.progress.of(block, blocks, "keystrokes, block");
    for (const name of names) {
      for (let index = 0; index < each; index += 1)
        samples[name].push(await echoMs(viewers[name], key));
    }
    typed += each;
    if (typed % lineChars === 0) for (const name of names) await echoMs(viewers[name], enter);
  }
  for (const name of names) await viewers[name].close();
  return (["agent", "plain", "withFrames"] as const).map((name) => {
    const ratio = median(samples[name]) / median(samples.bare);
    const path = { agent: "the agent", plain: "Berth", withFrames: "Berth, with frames" }[name];
    const [own, bare] = [median(samples[name]), median(samples.bare)];
    return {
      row: `echo of a keystroke through ${path}, against a bare PTY`,
      measured: `${own.toFixed(2)} ms against ${bare.toFixed(2)} ms`,
      ...(name === "agent" ? {} : { target: `≤ ${echoRatioMax} ×`, met: ratio <= echoRatioMax }),
      ratio: round(ratio),
      raw: { through: spread(samples[name]), bare: spread(samples.bare) },
    };
  });
}

async function echoMs(viewer: TerminalViewer, typed: Uint8Array<ArrayBuffer>): Promise<number> {
  const startedAt = performance.now();
  const last = typed === enter ? 0x0a : typed[0];
  const echoed = viewer.seen((bytes) => bytes.at(-1) === last);
  viewer.type(typed);
  await echoed;
  return performance.now() - startedAt;
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
    measured: `${median(samples).toFixed(1)} ms`,
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
    const startedAt = performance.now();
    const received = viewer.seen((bytes) => {
      hash.update(bytes);
      read += bytes.length;
      return read >= floodBytes;
    });
    viewer.type(key);
    await received;
    rates.push(floodBytes / MB / ((performance.now() - startedAt) / 1000));
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
