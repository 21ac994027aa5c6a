/**
 * Every limit that a caller can meet, each with its reason. `npm run limits` turns this file into
 * docs/operate/limits.md.
 */

const KiB = 1024;
const MiB = 1024 * KiB;
const second = 1000;
const minute = 60 * second;

export const limits = {
  // Calls and their bodies
  /** JSON bodies: room for one exec with stdin, far below an isolate's 128 MB. */
  bodyBytesMax: 4 * MiB,
  /** Members of one object or list in a body: twice the most arguments that a call may have. */
  bodyMembersMax: 8192,
  /** Members of all objects and lists of a body: reading them may not hold up other calls. */
  bodyMembersTotalMax: 32_768,
  /** A body must have arrived completely by then; otherwise the call is refused with `body_timeout`. */
  bodyReadMs: 30 * second,
  /** The body of a refused call is read this far, so that its sender gets to read the refusal; beyond, the connection is cut. */
  refusedBodyBytesMax: 256 * MiB,
  /** A request id that a caller chose; it appears in logs. */
  requestIdBytesMax: 64,
  /** Address and headers of a request that is passed on to an agent, and how many headers: its server reads 16 KiB and 198, with those of Berth. */
  passedHeadBytesMax: 15 * KiB,
  passedHeadersMax: 128,

  // All calls of one machine together
  /** Calls on their way to an object or back at once; more make workerd answer some of them seconds late. */
  admittedCallsMax: 16,
  /** A call counts this long on its way there; after that it waits for a command or a lease, and keeps nobody out. */
  admittedCallMs: 20,
  /** Bodies that are read or held, of all callers and of one tenant: each costs workerd several times its size. */
  admittedBodyBytesMax: 32 * MiB,
  admittedTenantBytesMax: 8 * MiB,
  /** A body counts this long after it has arrived: then the agent has it. */
  admittedBodyMs: 2 * second,
  /** Calls that wait for their turn, of all callers and of one tenant, and for how long. */
  admissionWaitersMax: 16_384,
  admissionTenantWaitersMax: 4096,
  admissionWaitMs: 8 * second,

  // Commands
  /** Linux refuses one argument of 128 KiB and more (MAX_ARG_STRLEN counts the final NUL). */
  argBytesMax: 128 * KiB - 1,
  /** Arguments of one command. */
  argCountMax: 4096,
  /** Arguments and environment together: an eighth of the usual 2 MiB is left to the loader. */
  argTotalBytesMax: 1536 * KiB,
  /** Variables of one call: how many, and the size of each name and value. */
  envCountMax: 256,
  envNameBytesMax: 128,
  envValueBytesMax: 64 * KiB,
  /** The environment of a sandbox, as JSON: it shares one row of at most 2 MB with the rest of the record. */
  sandboxEnvBytesMax: 512 * KiB,
  /** A path: PATH_MAX without the final NUL. */
  pathBytesMax: 4095,
  /** Standard input of a command, which travels in the body of its call. */
  stdinBytesMax: 2 * MiB,
  /** Timeout of a command: default and maximum. Longer work is a process. */
  execTimeoutDefaultMs: minute,
  execTimeoutMaxMs: 60 * minute,
  /** Output of a command that is kept: default and maximum. The rest is read and discarded. */
  execOutputDefaultBytes: MiB,
  execOutputMaxBytes: 16 * MiB,
  /** Output kept for all running commands of one sandbox together, beyond the first part that each has to itself. */
  execOutputAllBytesMax: 256 * MiB,
  execOutputOwnBytes: 64 * KiB,
  /** Between TERM and KILL of a command's tree. */
  execKillGraceMs: 2 * second,
  /** How long output is still read after the first process has exited. */
  execDrainMs: 250,
  /** A response that takes longer begins with spaces, so that proxies keep the connection. */
  execHeartbeatAfterMs: 2 * second,
  execHeartbeatEveryMs: second,
  /** The longest response that the object itself requests from an agent: a thousand exit events. */
  agentJsonBytesMax: MiB,
  /** The object reads a response up to this size and sends it whole; a larger one passes through as a stream. */
  wholeResponseBytesMax: 64 * KiB,
  /** Commands at once in one sandbox; each costs descriptors and memory of the agent. */
  execConcurrentMax: 256,
  /** Results of commands with a key that the agent stores for repeated calls; the oldest are evicted first. */
  storedResultsBytesMax: 64 * MiB,
  /** How long a key is remembered, and how many. */
  keyMs: 10 * minute,
  keysMax: 10_000,

  // Processes
  /** Processes that run at once in one sandbox, in addition to commands. */
  processesMax: 256,
  /** Calls that wait for their turn to replace the process of one name, and for how long, with the kill grace of a few before it. */
  processReplacersMax: 64,
  processReplaceMs: 30 * second,
  /** Exited processes that are remembered, and how long. */
  processesExitedMax: 50,
  processExitedMs: 60 * minute,
  /** The longest timeout that a process can be given. */
  processTimeoutMaxMs: 7 * 24 * 60 * minute,
  /** The log of a process, on disk: minimum, default, maximum. */
  processLogMinBytes: 64 * KiB,
  processLogDefaultBytes: 8 * MiB,
  processLogMaxBytes: 1024 * MiB,
  /** With `block`: output kept for readers that reconnect, which covers what their connection had in flight. */
  processReplayBytes: 32 * MiB,
  /** With `block`: a reader that was cut off blocks the process this long. */
  processReaderResumeMs: 10 * second,
  /** Runs of one stream in a log; each costs memory, so that many small writes are bounded too. */
  processLogRunsMax: 65_536,
  /** A list shows this much of a command: 306 long ones would be half a gigabyte. */
  processListedCharsMax: 1024,
  /** Commands and arguments that are stored whole, for all processes together. */
  processCommandCharsMax: 32 * MiB,
  /** Readers of one log at once. */
  processFollowersMax: 64,
  /** How long a call waits for a process: default and maximum. */
  processWaitDefaultMs: 30 * second,
  processWaitMaxMs: 60 * minute,
  /** One write to a process, with as much again in memory until that reads it, and how long a write waits for one that does not read. */
  processStdinBytesMax: 4 * MiB,
  processStdinWaitMs: 25 * second,
  /** Calls that wait at once in one sandbox. */
  processWaitersMax: 256,

  // Sessions
  /** Sessions of one sandbox, each a running shell; commands that wait for their turn in one; ended ones whose reason is remembered. */
  sessionsMax: 64,
  sessionWaitersMax: 64,
  sessionsEndedMax: 100,
  /** Starting a shell, or copying its state. */
  sessionReadyMs: 10 * second,

  // Terminals
  /** Terminals of one sandbox: each is a running program with a screen. */
  terminalsMax: 64,
  /** No real screen is larger, and every cell is rendered. */
  terminalColsMax: 1000,
  terminalRowsMax: 1000,
  /** Output kept for viewers that connect late or reconnect. */
  terminalRingBytes: 2 * MiB,
  /** Sent beyond the last acknowledgement of a framed viewer; under a flood it decides how long a key waits for its echo. */
  terminalWindowBytes: 256 * KiB,
  /** Buffered in one socket; beyond it the viewer counts as slow. */
  terminalSocketBytes: 256 * KiB,
  /** Viewers of one terminal at once. */
  terminalViewersMax: 64,
  /** A framed viewer that was cut off blocks the program this long. */
  terminalResumeMs: 10 * second,
  /** One message of a viewer, and the input that the program has not read yet. */
  terminalInputBytesMax: MiB,
  /** How long a call waits for a snapshot of the screen. */
  terminalScreenMs: 5 * second,

  // Containers
  /** Bounds of a configured size on one machine: an agent and a shell need at least this. */
  jailMemoryBytesMin: 64 * MiB,
  jailProcessesMin: 32,
  jailProcessesMax: 100_000,
  /** Hosts in one list, with all of which each request of a sandbox is compared, and the length of a host name, as in the DNS. */
  networkHostsMax: 100,
  hostCharsMax: 253,
  /** From the start of a container to the agent's first response: the first start of an image on a host of the platform may take a minute. */
  startTimeoutMs: 3 * minute,
  /** The same on one machine, where a start takes a tenth of a second. */
  agentReadyTimeoutMs: minute,
  /** How long the platform keeps a container whose object sleeps, at most, and how often an object renews that. */
  inactivityTimeoutMs: 6 * 60 * minute,
  inactivityRenewMs: 5 * 60 * minute,
  /** The environment in the boot document of a saved tree, as JSON: it is one variable, of which Linux takes 128 KiB. */
  bootEnvBytesMax: 96 * KiB,
  /** How often an object checks whether a start is still in progress. */
  startProbeMs: 5 * second,
  /** Probe of an agent in doubt: a living one responds at once. */
  probeTimeoutMs: 5 * second,
  /** An agent that has not responded for this long is probed before a call, which costs half a millisecond. */
  agentProbeAfterMs: second,
  /** A read of the state waits this long for a probe, which then continues in the background. */
  probeWaitMs: second,
  /** A streamed response carries a byte a second; after this long without one its agent is gone. */
  streamTimeoutMs: 15 * second,
  /** Until nothing of a container is left; then the destroy is retried. */
  destroyTimeoutMs: 60 * second,
  /** Copying a tree, during which everything in the container stands still. */
  snapshotTimeoutMs: 10 * minute,
  /** The processes of a sandbox that the platform saves are stopped for this long at a time, and how often that is renewed. */
  freezeMs: minute,
  freezeRenewMs: 20 * second,
  /** Comparing two saved trees, including the wait for other comparisons: a million files take ten seconds. */
  changesTimeoutMs: 3 * minute,
  /** Bytes read to compare files whose times are inconclusive; beyond it such files count as modified. */
  changesReadBytesMax: 16 * 1024 * MiB,
  /** One call that waits for the end of an incarnation; below the 255 s after which Bun cuts an idle response. */
  monitorWaitMaxMs: minute,
  /** Restarts of a container that was lost, and the time in which they count. */
  restartsMax: 3,
  restartsWindowMs: 10 * minute,
  /** Ends for lack of memory in that time: the next incarnation would end the same way. */
  outOfMemoryMax: 3,
  /** How long the runtime is asked why a container ended; by then it knows, or it hangs. */
  endReasonWaitMs: second,
  /** The agent responds to control calls at once, and to exec within its heartbeat. */
  agentHeadersMs: 15 * second,
  /** How long a create or a call on a starting sandbox may hang. */
  waitMaxMs: 25 * second,

  // Metrics
  /** How often a container measures itself, and how many measurements it keeps: those of an hour. */
  metricsEveryMs: 10 * second,
  metricsMax: 360,

  // Services
  /** Services of one sandbox, and their text: it shares one row of at most 2 MB with the rest of the record. */
  servicesMax: 16,
  servicesBytesMax: 64 * KiB,
  /** The pause before a service is started again: first and longest; it grows unless the service ran for this long. */
  serviceRestartMs: 500,
  serviceRestartMaxMs: minute,
  serviceSteadyMs: minute,
  /** How long the next service, and a request from outside, waits for the port of a service. */
  servicePortMs: 30 * second,

  // The lease
  /** How long a lease lasts without a renewal: default, minimum, maximum. */
  leaseTtlMs: 30 * second,
  leaseTtlMinMs: second,
  leaseTtlMaxMs: 5 * minute,
  /** How long a caller may queue. */
  leaseQueueMaxMs: 60 * minute,
  /** A waiter that does not poll for this long leaves the queue. */
  leasePollMs: 30 * second,
  /** An unclaimed turn passes to the next waiter after this long. */
  leaseOfferMs: 10 * second,
  /** A lease granted to a waiting call must be used within this time, because the caller may have disconnected unnoticed. */
  leaseUseMs: 10 * second,
  /** Without a confirmation from the agent within this time the container is replaced. */
  leaseDrainMs: 30 * second,
  /** How often an overdue drain is checked. */
  leaseDrainCheckMs: 5 * second,
  /** How long, and for how many leases, the reason of their end is remembered. */
  leaseEndedMs: 10 * minute,
  leaseEndedMax: 1000,
  /** Waiters for one lease, waiters of one holder name, and waiters shown in a view. */
  leaseWaitersMax: 1000,
  leaseWaitersOfHolderMax: 16,
  leaseWaitersShownMax: 100,
  /** The name of a holder. */
  holderCharsMax: 128,

  // Metadata
  /** Metadata appears in lists and events: number of keys, size of a key, of a value, and in all. */
  metadataKeysMax: 64,
  metadataKeyBytesMax: 128,
  metadataValueBytesMax: 1024,
  metadataBytesMax: 16 * KiB,

  // Events
  /** Events kept for one sandbox; a later reader learns of the gap. */
  eventsMax: 1000,
  /** One page of events, and its events together, which may hold metadata. */
  eventsPageMax: 1000,
  eventsPageBytesMax: MiB,
  /** Commands are reported in batches: a row for each would cost more than the command. */
  eventsExecsEveryMs: second,
  eventsExecsMax: 100,
  /** Streams of events of one sandbox, or of one tenant, that are open at once. */
  eventFollowersMax: 100,
  /** An idle stream writes a comment this often, so that a disconnected reader is noticed. */
  eventHeartbeatMs: 10 * second,

  // Idleness and lifetime
  /** Time without work until a sandbox pauses: default, minimum, maximum. */
  idleTimeoutMs: 10 * minute,
  idleTimeoutMinMs: second,
  idleTimeoutMaxMs: 7 * 24 * 60 * minute,
  /** The maximum lifetime that a sandbox can be given: minimum and maximum. */
  maxLifetimeMinMs: second,
  maxLifetimeMaxMs: 365 * 24 * 60 * minute,
  /** The shortest time after which a paused sandbox can be destroyed. */
  destroyPausedMinMs: second,
  /** A pause that takes longer has failed. */
  pauseTimeoutMs: 2 * minute,

  // Files and archives
  /** One file or one unpacked archive: about what the disk of a sandbox holds. */
  fileBytesMax: 16 * 1024 * MiB,
  /** An upload that sends nothing for this long is aborted. */
  fileIdleMs: 30 * second,
  /** An upload: the largest file at a megabyte a second takes a quarter of it. */
  uploadMs: 24 * 60 * minute,
  /** Listing or removing the largest tree. */
  fileCallMs: 10 * minute,
  /** Transfers of files and archives at once. */
  fileTransfersMax: 64,
  /** A reader that accepts nothing for this long is disconnected, unless the agent's runtime did so already (255 s). */
  fileReaderMs: 10 * minute,
  /** Bytes a second over a whole large file, after that time: a slower reader is stuck. */
  fileReaderBytesMin: 4 * KiB,
  /** How deep a list goes, and what one page holds. */
  fileListDepthMax: 64,
  fileListPageMax: 5000,
  /** Entries that one listing examines. */
  fileListEntriesMax: 1_000_000,
  /** Watches of one sandbox, and folders under one watch, each of which costs the kernel a kilobyte. */
  fileWatchersMax: 32,
  fileWatchFoldersMax: 16_384,
  /** Changes of one path within this time are reported as one. */
  fileWatchCoalesceMs: 50,
  /** Changes that wait for a slow reader; more are reported as lost. */
  fileWatchEventsMax: 10_000,
  /** Long work on trees runs in slices of this length, so that nobody else waits longer. */
  fileSliceMs: 20,
  /** Members of one archive, and unpacked bytes for each packed one, beyond the first 16 MiB. */
  archiveEntriesMax: 1_000_000,
  archiveRatioMax: 200,

  // Git
  /** The address of a clone, a branch or tag, and each part of its credentials. */
  gitUrlBytesMax: 2048,
  gitRefBytesMax: 255,
  gitSecretBytesMax: 4096,
  /** Default timeout of a clone. */
  gitCloneTimeoutMs: 10 * minute,

  // Images of one machine
  /** The name of an image with host and tag. */
  imageReferenceCharsMax: 512,
  /** Layers of one image: their paths share the 4 KiB that the kernel takes as options of a mount. */
  imageLayersMax: 32,
  /** A manifest or configuration, which registries bound to the same. */
  imageManifestBytesMax: 4 * MiB,
  /** One layer, packed or unpacked, unless the operator sets another bound. */
  imageBytesMax: 32 * 1024 * MiB,
  /** Pulls and imports at once; each keeps a processor and the disk busy. */
  imagePullsMax: 4,
  /** Failed pulls whose reason is shown. */
  imageFailuresMax: 100,
  /** A call that imports an image. */
  imageImportMs: 60 * minute,

  // Templates
  /** Names with tags that a tenant has: each holds a tree. */
  templatesMax: 100,
  /** Builds of one tenant at once; each is a sandbox that works. */
  templateBuildsMax: 8,
  /** Steps of one build, and the whole call as JSON: it shares one row of at most 2 MB with what it inherits. */
  templateStepsMax: 200,
  templateBytesMax: 256 * KiB,
  /** A build that takes longer has failed. */
  templateBuildMs: 2 * 60 * minute,
  /** The end of a build's log that is kept. */
  templateLogCharsMax: MiB,
  /** One part of a log, and how long a build reads no output while a step runs. */
  templateLogPageCharsMax: 256 * KiB,
  templateLogEveryMs: second,
  /** Tries of one action of a build that fails for a passing reason, and the pause between them. */
  templateTriesMax: 20,
  templateRetryMs: 500,
  /** How often builds, and trees that are no longer needed, are checked. */
  templateCheckMs: 10 * second,
  /** A tree is kept this long after a create named it, for sandboxes that do not exist yet. */
  templateUseMs: 60 * minute,
  /** Sandboxes of one tree that are remembered without asking whether they still need it. */
  templateUsersMax: 256,

  // Checkpoints
  /** Checkpoints of one sandbox that a caller requested, each of which holds a tree, and the length of a name. */
  checkpointsMax: 50,
  checkpointNameCharsMax: 128,
  /** Between two automatic checkpoints: minimum, maximum, and the default where files do not outlive their container. */
  checkpointEveryMinMs: second,
  checkpointEveryMaxMs: 30 * 24 * 60 * minute,
  checkpointEveryMs: 30 * minute,
  /** Automatic checkpoints that are kept if nothing else is set, and the pause after one that failed. */
  automaticCheckpointsMax: 3,
  automaticCheckpointRetryMs: minute,
  /** Sandboxes that one create makes. */
  createCountMax: 64,
  /** How long a checkpoint lasts on Cloudflare; each restore renews it. */
  checkpointLifeMs: 30 * 24 * 60 * minute,

  // Scopes and lists
  /** Each part of a scope. */
  scopeCharsMax: 512,
  /** One page of a list of sandboxes, and its rows together: each caller that does not read its response keeps a multiple of it in memory. */
  sandboxesPageMax: 1000,
  sandboxesPageBytesMax: MiB,
  /** Filters by metadata in one list. */
  metadataFiltersMax: 8,
  /** A call that changes what lists show waits this long for the Directory. */
  listedWaitMs: second,
  /** Retry delay of a report to the Directory: first and longest. */
  reportRetryMs: 5 * second,
  reportRetryMaxMs: 5 * minute,
  /** State and metadata events in one report; more follow in the next ones. */
  reportEventsMax: 100,
  /** Events of a tenant that are kept. */
  tenantEventsMax: 10_000,
  /** How long the key of a create is remembered. */
  createKeyMs: 24 * 60 * minute,
  /** Sandboxes with stale rows that are probed at once. */
  staleProbesMax: 16,
  /** A request of the Directory to a sandbox; without a response in this time it is repeated later. */
  directoryRequestMs: 10 * second,
  /** A transient state in a row is stale after this long. */
  staleAfterMs: 90 * second,

  // Plans
  /** Names of plans that a tenant has. */
  plansMax: 10_000,
  /** Plans that a sandbox remembers to have left, so that their late messages are refused. */
  formerPlansMax: 100,
  /** One page of a list of plans. */
  plansPageMax: 1000,
  /** Sandboxes of one plan: each is frozen while all are saved. */
  planMembersMax: 100,
  /** Members whose files are saved at once, bounded by the disk, and members that are notified of a decision at once. */
  planPreparesMax: 4,
  planFinishesMax: 8,
  /** From the first lease to the decision, for the largest trees, a few at a time; beyond it the run aborts. */
  planPrepareMs: 30 * minute,
  /** How long a call waits for the end of a run before it returns 202. */
  planResponseMs: 50 * second,
  /** Runs of one plan that are kept, with the rows of their members: successful ones, and aborted ones in addition. */
  commitsStoredMax: 100,
  abortedRunsStoredMax: 20,
  /** How often a rollback tries to restore one member. */
  planRestoreTriesMax: 3,
  /** Pause after a restore that was refused for a passing reason: first and longest. */
  planRestorePauseMs: 5 * second,
  planRestorePauseMaxMs: minute,
  /** A member that is not done after this long responds so, and is asked again. */
  planFinishMs: 20 * second,
  /** The same for an abort while its preparation still runs. */
  planAbortMs: 5 * second,
  /** Changed paths that are listed for one member; the rest is counted. */
  changedPathsMax: 1000,
  /** Their text: a row holds 2 MB, and a response between objects with all members 32 MB. */
  changedPathsCharsMax: 64 * KiB,
  /** Retry delay for members that did not respond, which doubles each time, and for members that responded as pending. */
  planRetryMs: second,
  planPendingRetryMs: 2 * second,
  /** An undecided run is checked at least this often, because an idle object is evicted. */
  planUndecidedCheckMs: 4 * second,
  /** Saving a tree takes long; a repeated request joins the save in progress. */
  planPrepareRequestMs: minute,

  // Ports
  /** Open ports of one sandbox. */
  portsMax: 32,
  /** Letters and digits: more than 128 bits, and with port and id one label of a host (63). */
  portTokenChars: 26,
  /** Until a server in the sandbox begins its response, and the bytes of its headers: browsers and proxies take far less. */
  portHeadersMs: 60 * second,
  portResponseHeaderBytesMax: 64 * KiB,

  // Keys
  /** Lifetime of a key that expires: minimum, maximum. */
  keyTtlMinMs: second,
  keyTtlMaxMs: 10 * 366 * 24 * 60 * minute,
  /** Keys of an installation that calls created: each is one row, and a list shows all of them. */
  keysMadeMax: 10_000,
  /** Keys of a file. The Worker holds their digests, so that an invented key costs no call. */
  fileKeysMax: 1000,
  /** How long the Worker trusts what it looked up: a removed key is refused after that. */
  keyCacheMs: 3 * second,
  /** Keys whose lookup the Worker remembers. */
  keyCacheMax: 10_000,
  /** A ticket of a printed link signs in within this. */
  signInTicketMs: minute,
  /** Unused tickets of one tenant. */
  signInTicketsMax: 100,
  /** How long a browser stays signed in. */
  sessionKeyMs: 12 * 60 * minute,
  /** Browsers of one tenant that are signed in: one more ends the oldest. */
  sessionKeysMax: 200,

  /** Tenants that the metrics show: each is asked for its counts at each scrape. */
  metricsTenantsMax: 200,

  // Tokens, tickets and sockets
  /** Lifetime of a token: default, minimum, maximum. */
  tokenTtlMs: 60 * minute,
  tokenTtlMinMs: second,
  tokenTtlMaxMs: 30 * 24 * 60 * minute,
  /** Retry delay of a revocation that the agent has not confirmed. */
  revokeRetryMs: 5 * second,
  /** Lifetime of a connect ticket, and how many may be unused. */
  connectTicketMs: minute,
  connectTicketsMax: 100,
  /** After the object has restarted, a holder by connection can return for this long. */
  leaseReconnectMs: 10 * second,
  /** For this long a holder by connection can return that was cut off without a close frame. A close with code 1000 or 1005 releases at once. */
  leaseCutMs: 3 * second,
  /** The same after a close frame with another code, which a proxy or a browser sends when its client has gone. */
  leaseClosedMs: second,
  /** A holder by connection that sends no ping for this long has lost the lease, and a waiter its place. */
  leasePingMs: 30 * second,
  /** How often the WebSocket of a viewer or a port is pinged, and after how long without a response it is closed. */
  socketPingMs: 20 * second,
  socketTimeoutMs: minute,
  /** The reason that a caller gives for breaking a lease. */
  reasonCharsMax: 256,
  /** Calls that were cancelled before they arrived: how long and how many are remembered. */
  cancelledCallMs: minute,
  cancelledCallsMax: 1_000,
  /** A tombstone stays readable this long. */
  tombstoneMs: 7 * 24 * 60 * minute,
} as const;
