/**
 * Owns every number that bounds a wait, a buffer, a body, a name or a count, each with its reason.
 * Does not own defaults that are policy of one sandbox: those stand in its record.
 */

const KiB = 1024;
const MiB = 1024 * KiB;
const second = 1000;
const minute = 60 * second;

export const limits = {
  // Calls and their bodies
  /** JSON bodies: room for one exec with stdin, far below an isolate's 128 MB. */
  bodyBytesMax: 4 * MiB,
  /** Of one object or list in it: twice the most arguments that a call may have. */
  bodyMembersMax: 8192,
  /** A caller that sends a body slower than this is let go. */
  bodyReadMs: 30 * second,
  /** Of a call that is refused: read out, so that its sender comes to read why. Beyond, the connection breaks. */
  refusedBodyBytesMax: 256 * MiB,
  /** A request id of a caller's own: it stands in logs. */
  requestIdBytesMax: 64,

  // Commands
  /** Linux refuses one argument of 128 KiB and more (MAX_ARG_STRLEN counts the final NUL). */
  argBytesMax: 128 * KiB - 1,
  /** Arguments of one command. */
  argCountMax: 4096,
  /** Arguments and environment together: an eighth of the usual 2 MiB is left to the loader. */
  argTotalBytesMax: 1536 * KiB,
  /** Variables of one call: how many, and of each its name and its value. */
  envCountMax: 256,
  envNameBytesMax: 128,
  envValueBytesMax: 64 * KiB,
  /** Of a sandbox's own, as JSON: it stands in one row, which holds 2 MB, beside all else that the sandbox is made of. */
  envKeptBytesMax: 512 * KiB,
  /** A path: PATH_MAX without the final NUL. */
  pathBytesMax: 4095,
  /** Standard input of a command, which travels in the body of its call. */
  stdinBytesMax: 2 * MiB,
  /** How long a command may take: unless it says, and at most. Longer work is a process. */
  execTimeoutDefaultMs: minute,
  execTimeoutMaxMs: 60 * minute,
  /** Output of a command that is kept: unless it says, and at most. The rest is read and dropped. */
  execOutputDefaultBytes: MiB,
  execOutputMaxBytes: 16 * MiB,
  /** Kept of all commands that run in one sandbox, beyond the first part that each has for itself. */
  execOutputAllBytesMax: 256 * MiB,
  execOutputOwnBytes: 64 * KiB,
  /** Between TERM and KILL of a command's tree. */
  execKillGraceMs: 2 * second,
  /** How long output is still read after the leader is gone. */
  execDrainMs: 250,
  /** An answer that takes longer begins with spaces, so that proxies keep it. */
  execHeartbeatAfterMs: 2 * second,
  execHeartbeatEveryMs: second,
  /** The longest answer that the object itself asks an agent for: a thousand endings. */
  agentJsonBytesMax: MiB,
  /** An answer up to this is read by the object and told whole; a larger one passes through it as a stream. */
  answerWholeBytesMax: 64 * KiB,
  /** Commands at once in one sandbox; each costs descriptors and memory of the agent. */
  execConcurrentMax: 256,
  /** Answers of execs with a key, kept by the agent for those who ask again: the oldest go first. */
  keptAnswersBytesMax: 64 * MiB,
  /** How long a key is remembered, and how many. */
  keyMs: 10 * minute,
  keysMax: 10_000,

  // Processes
  /** Processes that run at once in one sandbox, beside commands. */
  processesMax: 256,
  /** Calls that wait for their turn to replace the process of one name. */
  processReplacersMax: 64,
  /** Until its turn has come and the process that it replaces has ended: the grace, and the kernel's time, for a few. */
  processReplaceMs: 30 * second,
  /** Exited ones that are remembered, and how long. */
  processesExitedMax: 50,
  processExitedMs: 60 * minute,
  /** How long a process may be given, where it says when it is to be ended. */
  processTimeoutMaxMs: 7 * 24 * 60 * minute,
  /** The log of a process: at least, unless it says, and at most. It lies on the disk. */
  processLogMinBytes: 64 * KiB,
  processLogDefaultBytes: 8 * MiB,
  processLogMaxBytes: 1024 * MiB,
  /** With `block`: kept for readers who come back, beyond what nobody has read. What a connection may have in flight. */
  processReplayBytes: 32 * MiB,
  /** With `block`: a reader who was cut off holds the process back this long. */
  processReaderBackMs: 10 * second,
  /** Runs of one stream in a log; each costs memory, so that many small writes are bounded too. */
  processLogRunsMax: 65_536,
  /** Of a longer command a list shows the beginning: 306 of them would be half a gigabyte. */
  processListedCharsMax: 1024,
  /** Commands and arguments that are remembered whole, of all processes together. */
  processCalledCharsMax: 32 * MiB,
  /** Readers of one log at once. */
  processFollowersMax: 64,
  /** How long a call waits for a process: unless it says, and at most. */
  processWaitDefaultMs: 30 * second,
  processWaitMaxMs: 60 * minute,
  /** One write to a process; what it has not read yet waits in memory up to as much again. */
  processStdinBytesMax: 4 * MiB,
  /** A write waits this long for a process that does not read. */
  processStdinWaitMs: 25 * second,
  /** Calls that wait at once in one sandbox. */
  processWaitersMax: 256,

  // Sessions
  /** Sessions of one sandbox: each is a shell that runs. */
  sessionsMax: 64,
  /** Commands that wait for their turn in one session. */
  sessionWaitersMax: 64,
  /** Ended sessions that are remembered, to say why. */
  sessionsEndedMax: 100,
  /** Starting a shell, or taking its state. */
  sessionReadyMs: 10 * second,

  // Terminals
  /** Terminals of one sandbox: each is a program that runs, with a screen. */
  terminalsMax: 64,
  /** Larger screens are nobody's, and each cell is drawn. */
  terminalColsMax: 1000,
  terminalRowsMax: 1000,
  /** Output kept for those who come late or come back. */
  terminalRingBytes: 2 * MiB,
  /** Sent beyond the last acknowledgement of a framed viewer: under a flood it is how long a key waits for its echo. */
  terminalWindowBytes: 256 * KiB,
  /** Waiting in one socket; beyond it the viewer is slow, and waits in the ring. */
  terminalSocketBytes: 256 * KiB,
  /** Viewers of one terminal at once. */
  terminalViewersMax: 64,
  /** A framed viewer that was cut off holds the program back this long. */
  terminalBackMs: 10 * second,
  /** One message of a viewer, and what the program has not read yet. */
  terminalInputBytesMax: MiB,
  /** A picture of the screen that takes longer is not waited for. */
  terminalScreenMs: 5 * second,

  // Containers
  /** Of a configured size, on one machine: an agent and a shell need as much. */
  roomMemoryBytesMin: 64 * MiB,
  roomProcessesMin: 32,
  roomProcessesMax: 100_000,
  /** Of one list of a network: each request of a sandbox is held against all of them. */
  networkHostsMax: 100,
  /** A host: as long as a name in the DNS. */
  hostCharsMax: 253,
  /** From the engine's or the platform's start to the agent's first answer. */
  startTimeoutMs: 60 * second,
  /** How often an object looks whether a start is still under way: it may have died beside it. */
  startLookMs: 5 * second,
  /** Asked when a container is in doubt: an agent that lives answers this at once. */
  aliveMs: 5 * second,
  /** An agent that was not heard of for this long is looked at before a call: that costs half a millisecond. */
  agentQuietMs: second,
  /** Who only asks how a sandbox is waits this long for an agent that was not heard of; the look goes on without him. */
  lookWaitMs: second,
  /** An answer under way brings a byte a second; silence this long means that its agent is gone. */
  streamSilenceMs: 15 * second,
  /** Until nothing of a container is left; then it is tried again. */
  destroyTimeoutMs: 60 * second,
  /** Copying a tree; the container stands still meanwhile. */
  snapshotTimeoutMs: 10 * minute,
  /** Comparing two saved trees, the wait for others who compare included: a million files take ten seconds. */
  changesTimeoutMs: 3 * minute,
  /** Read to compare files whose times say nothing; beyond it those with another time are taken for modified. */
  changesReadBytesMax: 16 * 1024 * MiB,
  /** One call that waits for the end of a life; below the 255 s after which Bun cuts a silent answer. */
  monitorWaitMaxMs: minute,
  /** Attempts to start a container again that was lost through no fault of its own. */
  restartsMax: 3,
  restartsWindowMs: 10 * minute,
  /** Ends for want of memory in that time: the next life would come to the same. */
  outOfMemoryMax: 3,
  /** Whoever runs a container is asked this long why it ended; by then its end is known, or it hangs. */
  endToldMs: second,
  /** The agent answers control calls at once, and exec within its heartbeat. */
  agentHeadersMs: 15 * second,
  /** How long a create or a call on a starting sandbox may hang. */
  waitMaxMs: 25 * second,

  // The lease
  /** How long it lasts without a renewal: unless it says, at least, and at most. */
  leaseTtlMs: 30 * second,
  leaseTtlMinMs: second,
  leaseTtlMaxMs: 5 * minute,
  /** How long a caller may be willing to queue. */
  leaseQueueMaxMs: 60 * minute,
  /** A waiter who does not ask again for this long has gone. */
  leasePollMs: 30 * second,
  /** An offered turn that is not taken passes on. */
  leaseOfferMs: 10 * second,
  /** A lease given to a waiting call must be used: the caller may have gone without our knowing. */
  leaseUseMs: 10 * second,
  /** Without a confirmation from the agent the container is replaced. */
  leaseDrainMs: 30 * second,
  /** How often an overdue drain is looked at again. */
  leaseDrainLookMs: 5 * second,
  /** How long the end of a lease is remembered for those who ask, and of how many. */
  leaseEndedMs: 10 * minute,
  leaseEndedMax: 1000,
  /** Who may wait for one lease, how many of them for one holder, and how many are shown. */
  leaseWaitersMax: 1000,
  leaseWaitersOfHolderMax: 16,
  leaseWaitersShownMax: 100,
  /** The name of a holder. */
  holderCharsMax: 128,

  // Metadata
  /** Metadata is told in lists and events: how many keys, how long a key, a value, and all of it. */
  metadataKeysMax: 64,
  metadataKeyBytesMax: 128,
  metadataValueBytesMax: 1024,
  metadataBytesMax: 16 * KiB,

  // Events
  /** Events kept of one sandbox; a reader who comes later is told of the gap. */
  eventsMax: 1000,
  /** One page of events. */
  eventsPageMax: 1000,
  /** Commands are told in batches: a row for each would cost more than the command. */
  eventsExecsEveryMs: second,
  eventsExecsMax: 100,
  /** Streams of events of one sandbox, or of one tenant, that are open at once. */
  eventFollowersMax: 100,
  /** A stream without news writes a comment, so that a reader who is gone is noticed. */
  eventHeartbeatMs: 10 * second,

  // Idleness and lifetime
  /** Without work, until a sandbox pauses: unless it says, at least, and at most. */
  idleTimeoutMs: 10 * minute,
  idleTimeoutMinMs: second,
  idleTimeoutMaxMs: 7 * 24 * 60 * minute,
  /** How long a sandbox may live, where it says so. */
  maxLifetimeMinMs: second,
  maxLifetimeMaxMs: 365 * 24 * 60 * minute,
  /** A pause that takes longer has failed. */
  pauseTimeoutMs: 2 * minute,

  // Files and archives
  /** One file up or down; archives too, unpacked. What a disk of a sandbox may be expected to hold. */
  fileBytesMax: 16 * 1024 * MiB,
  /** A body that brings nothing for this long is given up. */
  fileIdleMs: 30 * second,
  /** An upload: the largest file at a megabyte a second takes a quarter of it. */
  uploadMs: 24 * 60 * minute,
  /** Looking through or removing the largest tree. */
  fileCallMs: 10 * minute,
  /** Files and archives that are on their way at once. */
  fileTransfersMax: 64,
  /** A reader who takes nothing of an answer for this long is let go, if the agent's runtime has not done so (255 s). */
  fileReaderMs: 10 * minute,
  /** Bytes a second, over the whole of a large file and beyond that time: who is slower than that is stuck. */
  fileReaderBytesMin: 4 * KiB,
  /** How deep a list goes, and what one page holds. */
  fileListDepthMax: 64,
  fileListPageMax: 5000,
  /** Entries that one listing looks at. */
  fileListEntriesMax: 1_000_000,
  /** Watches of one sandbox. */
  fileWatchersMax: 32,
  /** Folders under one watch: each costs the kernel a kilobyte. */
  fileWatchFoldersMax: 16_384,
  /** Changes of one path within this are told as one. */
  fileWatchCoalesceMs: 50,
  /** Changes that wait for a slow reader; more are told as lost. */
  fileWatchEventsMax: 10_000,
  /** Removing or reading trees is done in slices, so that nobody else waits for longer. */
  fileSliceMs: 20,
  /** Members of one archive. */
  archiveEntriesMax: 1_000_000,
  /** Unpacked bytes for each packed one, beyond the first 16 MiB. */
  archiveRatioMax: 200,

  // Git
  /** The address of a clone, a branch or tag, and each part of its credentials. */
  gitUrlBytesMax: 2048,
  gitRefBytesMax: 255,
  gitSecretBytesMax: 4096,
  /** How long a clone may take, unless it says. */
  gitCloneTimeoutMs: 10 * minute,

  // Checkpoints
  /** Asked-for checkpoints of one sandbox; each holds a tree. */
  checkpointsMax: 50,
  /** The name of a checkpoint. */
  checkpointNameCharsMax: 128,
  /** How long a checkpoint lives on the platform; each restore renews it. */
  checkpointLifeMs: 30 * 24 * 60 * minute,

  // Scopes and lists
  /** Each part of a scope. */
  scopeCharsMax: 512,
  /** One page of a list of sandboxes. */
  sandboxesPageMax: 1000,
  /** And its rows together: one answer between objects carries 32 MiB, in which a character may take two bytes. */
  sandboxesPageBytesMax: 8 * MiB,
  /** Filters by metadata in one list. */
  metadataFiltersMax: 8,
  /** A call that changes what lists show waits this long for the list to know. */
  listedWaitMs: second,
  /** A change that could not be told is told again after this long, and then ever more slowly. */
  tellAgainMs: 5 * second,
  tellAgainMaxMs: 5 * minute,
  /** State and metadata events in one report; more are told in the next ones. */
  reportEventsMax: 100,
  /** Events of a tenant that are kept. */
  tenantEventsMax: 10_000,
  /** How long the key of a create is remembered. */
  createKeyMs: 24 * 60 * minute,
  /** Looks at sandboxes whose row seems old, at once. */
  healAtOnceMax: 16,
  /** What the Directory asks of a sandbox's object is answered in this time, or asked again later. */
  directoryAskMs: 10 * second,
  /** A row that should have moved on by then is asked. */
  staleAfterMs: 90 * second,

  // Plans
  /** Names of plans that a tenant has. */
  plansMax: 10_000,
  /** Plans that a sandbox remembers to have left: what comes late of them is refused. */
  plansHeardMax: 100,
  /** One page of a list of plans. */
  plansPageMax: 1000,
  /** Sandboxes of one plan: each holds its files still while all are saved. */
  planMembersMax: 100,
  /** Members whose files are saved at once: each holds one of the disk's copies. */
  planPrepareAtOnceMax: 4,
  /** Members that are told the end of a run at once. */
  planFinishAtOnceMax: 8,
  /** From the first lease to the decision: saving the largest trees, a few at a time. Beyond it, abort. */
  planPrepareMs: 30 * minute,
  /** How long a call waits for the end of a run before it answers that it goes on. */
  planAnswerMs: 50 * second,
  /** Runs of one plan that did what was asked, to be read again; the rows of their members are kept with them. */
  commitsKeptMax: 100,
  /** And of those that came to nothing: they take no place of the others. */
  abortedRunsKeptMax: 20,
  /** How often a rollback tries to bring one member back. */
  planRestoreTriesMax: 3,
  /** Between two tries where the first was refused for what passes by itself; ever longer, up to the second. */
  planRestorePauseMs: 5 * second,
  planRestorePauseMaxMs: minute,
  /** A member that has not done its part by then says so, and is asked once more. */
  planFinishMs: 20 * second,
  /** The same of an abort, while what was being prepared for it still runs. */
  planLetGoMs: 5 * second,
  /** Changed paths of one member that are listed; the rest is counted. */
  changedPathsMax: 1000,
  /** Of their text: a row of an object holds 2 MB, and one answer between objects, with the most members, 32. */
  changedPathsCharsMax: 64 * KiB,
  /** Whom a plan asked and not heard is asked again after this long, and then ever more slowly. */
  planLookMs: second,
  /** Whoever answered that it goes on is asked again after this long. */
  planAgainMs: 2 * second,
  /** While a run is undecided it is looked at this often at least: an object without work is put away. */
  planDecidingLookMs: 4 * second,
  /** Saving a tree takes its time; whoever asks again joins what is under way. */
  planPrepareAskMs: minute,

  // Ports
  /** Open ports of one sandbox. */
  portsMax: 32,
  /** Letters and digits: more than 128 bits, and together with port and id one label of a host (63). */
  portTokenChars: 26,
  /** Until a server in the sandbox begins to answer. */
  portHeadersMs: 60 * second,

  // Tokens, tickets and sockets
  /** How long a token is good: unless it says, at least, and at most. */
  tokenTtlMs: 60 * minute,
  tokenTtlMinMs: second,
  tokenTtlMaxMs: 30 * 24 * 60 * minute,
  /** An agent that could not be told of a revocation is told again after this long, whatever becomes of the object. */
  revokeAgainMs: 5 * second,
  /** A connect ticket is good once, this long; so many may wait to be used. */
  connectTicketMs: minute,
  connectTicketsMax: 100,
  /** Sockets lost with the object may come back this long. */
  leaseReconnectMs: 10 * second,
  /** A socket without a ping this long is gone. */
  leasePingMs: 30 * second,
  /** A viewer of a terminal, or a visitor's WebSocket, is pinged this often; nothing of it for that long, and it is let go. */
  socketPingMs: 20 * second,
  socketSilenceMs: minute,
  /** Why a lease was taken away, in words. */
  reasonCharsMax: 256,
  /** A tombstone stays readable this long. */
  tombstoneMs: 7 * 24 * 60 * minute,
} as const;
