/** Measures the packed command from its start to its end, against the start of Node alone. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { bundleCommand } from "../../../container/launch/package.js";
import { tools } from "../../../container/launch/paths.js";
import { Berth } from "../berth.ts";
import { createCheckout, userEnvironment } from "../checkout.ts";
import { type Bench, comparison, type Figure, inMs } from "../figure.ts";
import { inTurns, timed } from "../measure.ts";

const files = 200;
const execRatioMax = 2.5;

export async function command(bench: Bench): Promise<Figure[]> {
  const berth = await Berth.start(bench);
  const home = bench.folder();
  const checkout = createCheckout(home, files);
  const env = { ...userEnvironment(home), BERTH_URL: berth.http.url, BERTH_KEY: berth.key };
  bundleCommand(home);
  const node = (...args: string[]) => runProgram(tools.node, args, { cwd: checkout, env });
  const run = (...args: string[]) => node(join(home, "berth.js"), ...args);
  const { sandbox } = JSON.parse(await run("exec", "--json", "--", "true"));
  const times = await inTurns(
    bench,
    "round",
    { turns: bench.isShort ? 5 : 30, warmUps: 2 },
    {
      node: () => timed(() => node("-e", "0")),
      exec: () => timed(() => run("exec", "--", "true")),
      byId: () => timed(() => run("exec", "--id", sandbox, "--", "true")),
      list: () => timed(() => run("list")),
    },
  );
  const against = (name: string, own: number[], ratioMax?: number) =>
    comparison(
      `\`${name}\`, against \`node -e 0\`: median`,
      { own, node: times.node },
      { format: inMs(0), ...(ratioMax === undefined ? {} : { ratioMax }) },
    );
  return [
    against("berth exec -- true", times.exec, execRatioMax),
    against("berth exec --id … -- true", times.byId),
    against("berth list", times.list),
  ];
}

type SpawnPlace = { cwd: string; env: NodeJS.ProcessEnv };

async function runProgram(program: string, args: string[], place: SpawnPlace): Promise<string> {
  const child = spawn(program, args, { ...place, stdio: ["ignore", "pipe", "inherit"] });
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (more: string) => {
    stdout += more;
  });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${program} ${args.join(" ")} ended with ${code}: ${stdout}`);
  return stdout;
}
