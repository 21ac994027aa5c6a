/**
 * Owns the names on the wire between a Sandbox object and the agent: protocol version, port, headers, paths.
 * Does not own bodies (agent.ts): the agent takes this file alone, without the library of schemas.
 */

export const agentProtocol = 2;

/** The oldest that is still spoken. A saved tree of the platform's brings its agent along: those of the last 60 days are. */
export const agentProtocolMin = 1;

/** The first that knows `revoked`: one of before could not let go of a socket again, and is given none that a token opens. */
export const agentProtocolWithRevocation = 2;

/** Where the agent listens on the platform; on one machine it takes any free port of the loopback. */
export const agentPort = 8228;

export const agentHeaders = {
  protocol: "berth-protocol",
  incarnation: "berth-incarnation",
  /** A number that only grows; the agent refuses a lower one than it has seen (409 stale_fence). */
  fence: "berth-fence",
  requestId: "berth-request-id",
  /** Of a socket that a token opens: the generation of that. Without it the socket is nobody's to revoke. */
  generation: "berth-generation",
  /** The id of the reader or viewer that connects. A header, because agents before it refuse unknown parameters. */
  reader: "berth-reader",
} as const;

export const agentPaths = {
  /** GET → AgentHealth. */
  health: "/v1/health",
  /** POST AgentExecCall → ExecResult, or an error body. Gated. */
  exec: "/v1/exec",
  /** GET `/<exec id>`: the answer of an exec that was told to be kept; waits for it as the first caller would. */
  execs: "/v1/execs",
  /** POST AgentProcessCall (gated), GET → Processes; below `/<id>`: GET, DELETE, logs, wait, stdin, signal. */
  processes: "/v1/processes",
  /** POST AgentSessionCall (gated), GET → Sessions; below `/<id>`: GET, DELETE, exec, processes. */
  sessions: "/v1/sessions",
  /** POST AgentTerminalCall (gated), GET → Terminals; below `/<id>`: GET, PATCH, DELETE, screen, connect. */
  terminals: "/v1/terminals",
  /** `?path=`: GET, PUT, DELETE; below it stat, list, mkdir, move, watch. Writes are gated. */
  files: "/v1/files",
  /** `?path=`: GET, PUT (gated). */
  archive: "/v1/archive",
  /** POST `/clone` CloneCall (gated) → server-sent events. */
  git: "/v1/git",
  /** GET, upgraded to the line of the object (agent-line.ts). An agent of before answers 404. */
  channel: "/v1/line",
  /** GET `/<id>`: the answer of a call by the line that takes longer, or is longer. It ends with who has taken it. */
  deferred: "/v1/later",
  /** GET `?after=<n>` → AgentWork: what runs, for how long nothing has, and what ended since. */
  work: "/v1/work",
  /** POST AgentFence → AgentFenced. From now on nothing below the fence begins; with `drain` it also ends. */
  fence: "/v1/fence",
  /** POST AgentRevoked → the same. Sockets that tokens of an earlier generation opened are closed, and none comes later. */
  revoked: "/v1/revoked",
  /** PUT AgentMetadata → AgentMetadataKept. An older version than the one it has is ignored. */
  metadata: "/v1/metadata",
  /** Any method, `/v1/ports/<port>/<path>`: HTTP or WebSocket to a server in the sandbox. */
  ports: "/v1/ports",
} as const;
