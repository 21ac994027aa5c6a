/**
 * Owns what can be made of a process without a birth: which program it is, what is remembered of it, its log.
 * Does not own the birth (process.ts), nor whether there is room for one (processes.ts).
 */
import type { AgentProcessCall } from "../../../src/protocol/internal/agent.ts";
import { calledProgram } from "../exec/called-program.ts";
import type { Refusal } from "../exec/program.ts";
import { folderOf, type Place } from "../exec/sandbox-env.ts";
import { notMade } from "../kernel/pipes.ts";
import type { CalledRoom } from "./called.ts";
import { Process, type Program } from "./process.ts";

/** A refusal: it will say why it cannot run, and have exited. */
export type Made = { process: Process; launch: Program | Refusal };

type Around = {
  place: Place;
  called: CalledRoom;
  sessionId: string | undefined;
  /** In place of what the call's command, argv, cwd and env would give. */
  program: Omit<Program, "user"> | undefined;
};

/** What fails here fails with nothing begun, and nothing kept. */
export function makeProcess(
  call: AgentProcessCall,
  { place, called: room, sessionId, program }: Around,
): Made {
  const { id, name, command, argv, cwd: _cwd, env: _env, ...kept } = call;
  const { user, logs } = place;
  const launch = program === undefined ? calledProgram(place, call) : { ...program, user };
  const cwd = "program" in launch ? launch.cwd : folderOf(place, call.cwd);
  const called = room.take({ command, argv });
  try {
    const process = new Process({ id, name, sessionId, called, call: kept, cwd, logs });
    return { process, launch };
  } catch (error) {
    room.giveBack(called);
    throw notMade(error);
  }
}
