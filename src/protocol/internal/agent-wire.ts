/**
 * Names on the wire between a Sandbox object and the agent: protocol version, port, headers and paths. The agent
 * loads this file, so it does not use the schema library.
 */

export const agentProtocol = 2;

/** The oldest supported version. On Cloudflare a saved tree contains the agent it was saved with; versions of the last 60 days are supported. */
export const agentProtocolMin = 1;

/**
 * The first version with `revoked`. Older agents cannot close a WebSocket on revocation, so they get no WebSocket that a
 * token opened.
 */
export const agentProtocolWithRevocation = 2;

/** The agent's port on the platform. On one machine it listens on any free port of the loopback. */
export const agentPort = 8228;

export const agentHeaders = {
  protocol: "berth-protocol",
  incarnation: "berth-incarnation",
  /** Grows with each lease; the agent refuses a fence below the highest it has seen (409 stale_fence). */
  fence: "berth-fence",
  requestId: "berth-request-id",
  /** The generation of the token that opens a WebSocket. Without it the WebSocket cannot be revoked. */
  generation: "berth-generation",
  /** The id of the key that opens a WebSocket. An agent that can close it on removal returns the header. */
  keyId: "berth-key-id",
  /** The id of the reader or viewer that connects. A header, because older agents refuse unknown query parameters. */
  reader: "berth-reader",
} as const;

/** The host by which an agent on the platform reaches its object; no such host exists anywhere else. */
export const callbackHost = "berth.internal";

export const callbackPaths = {
  /** POST, with secret and incarnation → 202: the host will go within minutes; the object saves the files and ends the container. */
  closing: "/v1/closing",
} as const;

export const agentPaths = {
  /** GET → AgentHealth. */
  health: "/v1/health",
  /** POST AgentExecCall → ExecResult, or an error body. Gated. */
  exec: "/v1/exec",
  /** GET `/<exec id>`: the result of an exec with `keep`; waits until it has ended. */
  execs: "/v1/execs",
  /** POST `/<exec id>`: ends the command. Older agents return 404. */
  cancel: "/v1/cancel",
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
  /** GET, upgraded to the channel (agent-channel.ts). Older agents return 404. */
  channel: "/v1/line",
  /** GET `/<id>`: the result of a channel call that is slow or large. It can be read once. */
  deferred: "/v1/later",
  /** GET `?after=<n>` → AgentWork: what runs, the idle time, and what ended after event n. */
  work: "/v1/work",
  /** POST AgentFence → AgentFenced. Nothing below the fence starts any more; with `drain` it also ends. */
  fence: "/v1/fence",
  /** POST AgentFreeze → AgentFrozen: stops everything while the platform saves the files. Older agents return 404. */
  freeze: "/v1/freeze",
  /** POST AgentRevoked → the same. Closes and refuses WebSockets that tokens of earlier generations open. */
  revoked: "/v1/revoked",
  /** PUT AgentMetadata → AgentMetadataStored. Ignores versions older than its own. */
  metadata: "/v1/metadata",
  /**
   * PUT AgentSettings → its version: the environment of later commands, and what runs by itself. GET → Services;
   * GET `/ready?port=&waitMs=`: whether the service of a port is ready. Older agents return 404.
   */
  services: "/v1/services",
  /** GET `?last=<n>` → Metrics. Older agents return 404. */
  metrics: "/v1/metrics",
  /** Any method, `/v1/ports/<port>/<path>`: HTTP or WebSocket to a server in the sandbox. */
  ports: "/v1/ports",
} as const;
