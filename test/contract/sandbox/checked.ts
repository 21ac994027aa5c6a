/** Checks that every response in the suite has exactly the form that the protocol promises. */
import { z } from "zod";
import type { SandboxApi } from "../../../src/protocol/api.ts";
import { eventsSchema } from "../../../src/protocol/event.ts";
import { execResultSchema } from "../../../src/protocol/exec.ts";
import {
  fileSchema,
  filesSchema,
  removedSchema,
  unpackedSchema,
} from "../../../src/protocol/file.ts";
import {
  leaseQueuedSchema,
  leaseReleasedSchema,
  leaseSchema,
  leaseStateSchema,
} from "../../../src/protocol/lease.ts";
import { metadataAnswerSchema } from "../../../src/protocol/metadata.ts";
import { portSchema, portsSchema } from "../../../src/protocol/port.ts";
import {
  processesSchema,
  processSchema,
  stdinTakenSchema,
  waitedSchema,
} from "../../../src/protocol/process.ts";
import { connectTicketSchema, tokenSchema } from "../../../src/protocol/rights.ts";
import { sandboxSchema } from "../../../src/protocol/sandbox.ts";
import {
  sessionEndedSchema,
  sessionSchema,
  sessionsSchema,
} from "../../../src/protocol/session.ts";
import {
  screenSchema,
  terminalEndedSchema,
  terminalSchema,
  terminalsSchema,
} from "../../../src/protocol/terminal.ts";

const forms: { [verb in keyof SandboxApi]?: z.ZodType } = {
  get: sandboxSchema,
  start: sandboxSchema,
  pause: sandboxSchema,
  touch: sandboxSchema,
  destroy: sandboxSchema,
  exec: execResultSchema,
  acquireLease: z.union([leaseSchema, leaseQueuedSchema]),
  renewLease: leaseSchema,
  releaseLease: leaseReleasedSchema,
  breakLease: leaseReleasedSchema,
  lease: leaseStateSchema,
  metadata: metadataAnswerSchema,
  patchMetadata: metadataAnswerSchema,
  replaceMetadata: metadataAnswerSchema,
  events: eventsSchema,
  createToken: tokenSchema,
  createTicket: connectTicketSchema,
  openPort: portSchema,
  ports: portsSchema,
  startProcess: processSchema,
  processes: processesSchema,
  process: processSchema,
  waitForProcess: waitedSchema,
  writeStdin: stdinTakenSchema,
  signalProcess: processSchema,
  endProcess: processSchema,
  createSession: sessionSchema,
  sessions: sessionsSchema,
  session: sessionSchema,
  execInSession: execResultSchema,
  startProcessInSession: processSchema,
  endSession: sessionEndedSchema,
  createTerminal: terminalSchema,
  terminals: terminalsSchema,
  terminal: terminalSchema,
  resizeTerminal: terminalSchema,
  terminalScreen: screenSchema,
  writeFile: fileSchema,
  removeFile: removedSchema,
  stat: fileSchema,
  listFiles: filesSchema,
  mkdir: fileSchema,
  move: fileSchema,
  uploadArchive: unpackedSchema,
  endTerminal: terminalEndedSchema,
};

type Verb = (...args: unknown[]) => PromiseLike<unknown>;

export function checked(box: SandboxApi): SandboxApi {
  return new Proxy({} as SandboxApi, {
    get: (_target, verb: keyof SandboxApi) => {
      const form = forms[verb];
      return async (...args: unknown[]) => {
        const answer = await (box[verb] as Verb).apply(box, args);
        return form === undefined ? answer : demandForm(verb, form, answer);
      };
    },
  });
}

function demandForm(verb: string, form: z.ZodType, answer: unknown): unknown {
  const { success, error } = form.safeParse(answer);
  if (success) return answer;
  throw new Error(`${verb} answered ${JSON.stringify(answer)}: ${z.prettifyError(error)}`);
}
