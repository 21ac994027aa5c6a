/** Measures one command in a session against the same command by exec, directly from the agent and through Berth. */
import { requireSuccess } from "../berth.ts";
import { agentCall, startBothSides } from "../direct.ts";
import { type Bench, comparison, type Figure } from "../figure.ts";
import type { Http } from "../http.ts";
import { inTurns, timed } from "../measure.ts";

/** A builtin starts no process. */
const builtinRatioMax = 1;
const sessionCall = { id: "bench", commandTimeoutMs: 60_000 };

export async function sessions(bench: Bench): Promise<Figure[]> {
  const { berth, path, direct } = await startBothSides(bench, 4);
  const bodyOf = (command: string) => JSON.stringify({ command });
  return [
    ...(await measureSide(bench, "agent", {
      http: direct,
      path: "/v1",
      bodyOf: (command) => agentCall({ command }),
    })),
    ...(await measureSide(bench, "through Berth", { http: berth.http, path, bodyOf })),
  ];
}

type Side = { http: Http; path: string; bodyOf: (command: string) => string };

async function measureSide(
  bench: Bench,
  name: string,
  { http, path, bodyOf }: Side,
): Promise<Figure[]> {
  const { id } = await http.json<{ id: string }>("POST", `${path}/sessions`, sessionCall);
  const timeOf = (route: string, command: string) => {
    const body = bodyOf(command);
    return () =>
      timed(async () => requireSuccess(await http.json("POST", `${path}${route}`, body)));
  };
  const { exec, builtin, program } = await inTurns(
    bench,
    `${name}, block`,
    { turns: bench.isShort ? 12 : 40, each: 25, warmUps: 4 },
    {
      exec: timeOf("/exec", "true"),
      builtin: timeOf(`/sessions/${id}/exec`, ":"),
      program: timeOf(`/sessions/${id}/exec`, "/bin/true"),
    },
  );
  return [
    comparison(
      `session, ${name}: \`:\` against exec of \`true\``,
      { session: builtin, exec },
      { ratioMax: builtinRatioMax },
    ),
    comparison(`session, ${name}: \`/bin/true\` against exec of \`true\``, {
      session: program,
      exec,
    }),
  ];
}
