/**
 * Owns the client that uses sessions: what a session was told it remembers, or it says that it has ended.
 */
import { type ClientMaker, markedWork } from "../harness.ts";
import type { Run } from "../history.ts";

export const sessions: ClientMaker = (desk) => async () => {
  const box = desk.box();
  const id = `s${desk.mark()}`;
  const made = await desk.ask("session", box, (sandbox) => sandbox.createSession({ id }));
  if (made.outcome !== "ack") return;
  const { incarnation } = made.value;
  const word = desk.random.name(8);
  const set = await desk.ask("exec in session", box, (sandbox) =>
    sandbox.execInSession(id, { command: `word=${word}; cd /tmp` }),
  );
  const isSet = set.outcome === "ack" && set.value.exitCode === 0;
  for (let n = 0; n < 3; n += 1) {
    const marker = desk.mark();
    const run: Run = { box, marker, outcome: "unknown" };
    desk.history.runs.push(run);
    const command = `${markedWork(marker, desk.random.between(0, 9))} && echo "$word $PWD"`;
    const told = await desk.ask("exec in session", box, (sandbox) =>
      sandbox.execInSession(id, { command }),
    );
    run.outcome = told.outcome;
    if (told.outcome !== "ack") break;
    if (told.value.exitCode !== 0) run.outcome = "unknown";
    if (!isSet || told.value.exitCode !== 0) continue;
    desk.history.reads.push({
      ...{ client: desk.name, what: `what session ${id} of ${incarnation} remembers`, box },
      ...{ allowed: [`${word} /tmp\n`], got: told.value.stdout },
    });
  }
  await desk.ask("end of a session", box, (sandbox) => sandbox.endSession(id));
};
