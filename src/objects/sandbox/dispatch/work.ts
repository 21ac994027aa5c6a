/**
 * Owns which file serves which gated call on processes, sessions and terminals.
 */
import type { Reply } from "../../shared/result.ts";
import type { ExecLog } from "../calls/exec-log.ts";
import type { Call } from "../calls/gated-call.ts";
import * as processes from "../calls/processes.ts";
import * as sessions from "../calls/sessions.ts";
import * as terminals from "../calls/terminals.ts";
import type { Work } from "./work-call.ts";

export function work(call: Call, log: ExecLog, asked: Work): Promise<Reply> {
  switch (asked.do) {
    case "startProcess":
      return asked.session === undefined
        ? processes.start(call, asked.call)
        : sessions.startProcess(call, asked.session, asked.call);
    case "writeStdin":
      return processes.write(call, asked.process, asked.query, asked.bytes);
    case "signalProcess":
      return processes.signal(call, asked.process, asked.signal);
    case "endProcess":
      return processes.end(call, asked.process);
    case "createSession":
      return sessions.create(call, asked.call);
    case "execInSession":
      return sessions.run(call, log, asked.session, asked.call);
    case "endSession":
      return sessions.end(call, asked.session);
    case "createTerminal":
      return terminals.create(call, asked.call);
  }
}
