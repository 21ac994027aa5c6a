/**
 * The capabilities that root inside never has, not even over its own namespaces. Most of them act on the machine alone,
 * where they are refused anyway; these are refused so that the code behind them is not reached either.
 */
const refused = {
  lease: [28, "who opens a leased file waits for its holder; see refused-calls.ts"],
  linuxImmutable: [9, "files that a save, a restore or a removal cannot replace"],
  netAdmin: [
    12,
    "firewalls and tunnels of a new network namespace hold most weaknesses of the kernel",
  ],
  netRaw: [13, "raw sockets forge addresses; ping works without"],
  ipcLock: [14, "locked memory cannot be reclaimed"],
  sysModule: [16, "the machine's kernel"],
  sysRawio: [17, "the machine's devices"],
  sysPacct: [20, "the machine's log of processes"],
  sysBoot: [22, "the machine's end"],
  sysNice: [23, "the processor time of neighbours"],
  sysResource: [24, "the limits of the sandbox"],
  sysTime: [25, "the machine's clock"],
  sysTtyConfig: [26, "the machine's terminals"],
  auditControl: [30, "the machine's audit"],
  macOverride: [32, "the machine's policy"],
  macAdmin: [33, "the machine's policy"],
  syslog: [34, "addresses in the kernel"],
  wakeAlarm: [35, "the machine's sleep"],
  blockSuspend: [36, "the machine's sleep"],
  auditRead: [37, "the machine's audit"],
  perfmon: [38, "looks into the kernel"],
  bpf: [39, "programs in the kernel"],
} as const satisfies Record<string, readonly [number: number, why: string]>;

export const refusedCapabilities: readonly number[] = Object.values(refused).map(
  ([number]) => number,
);
