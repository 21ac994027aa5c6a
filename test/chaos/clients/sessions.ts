/** A client that uses sessions: a session remembers what was set in it, or reports that it has ended. */
import { type ClientMaker, markedWork } from "../harness.ts";

export const sessions: ClientMaker = (harness) => async () => {
  const sandboxId = harness.pickSandbox();
  const id = `s${harness.mark()}`;
  const made = await harness.callSandbox("session", sandboxId, (sandbox) =>
    sandbox.createSession({ id }),
  );
  if (made.outcome !== "ack") return;
  const { incarnation } = made.value;
  const word = harness.random.name(8);
  const set = await harness.callSandbox("exec in session", sandboxId, (sandbox) =>
    sandbox.execInSession(id, { command: `word=${word}; cd /tmp` }),
  );
  const isSet = set.outcome === "ack" && set.value.exitCode === 0;
  for (let n = 0; n < 3; n += 1) {
    const run = harness.startRun(sandboxId);
    const command = `${markedWork(run.marker, harness.random.between(0, 9))} && echo "$word $PWD"`;
    const result = await harness.callSandbox("exec in session", sandboxId, (sandbox) =>
      sandbox.execInSession(id, { command }),
    );
    run.outcome = result.outcome;
    if (result.outcome !== "ack") break;
    if (result.value.exitCode !== 0) run.outcome = "unknown";
    if (!isSet || result.value.exitCode !== 0) continue;
    const what = `what session ${id} of ${incarnation} remembers`;
    const allowed = [`${word} /tmp\n`];
    harness.recordRead({ what, sandboxId, allowed, got: result.value.stdout });
  }
  await harness.callSandbox("end of a session", sandboxId, (sandbox) => sandbox.endSession(id));
};
