/**
 * The system calls that commands are refused, each with its reason. See docs/design/isolation.md for the same list in
 * words, and for what stays open.
 *
 * Calls that need a capability are refused without this list (see privileges.ts). Without user namespaces a command
 * cannot gain any capability, not even over a namespace of its own.
 */

/** A test of one argument of a call; only its lower 32 bits are seen, as the kernel itself does for an int. */
export type ArgumentTest = {
  argument: 0 | 1 | 2;
  is: "withBits" | "oneOf" | "noneOf";
  values: readonly number[];
};

/** Numbers of the same calls for programs of 64 and of 32 bits, which one kernel runs side by side. */
type Numbers = { bits64: readonly number[]; bits32: readonly number[] };

export type Refusal = {
  calls: string;
  why: string;
  /** What programs know from an older or smaller kernel, so that they fall back. */
  error: keyof typeof errorNumbers;
  /** All of them must hold; left out, the call is always refused. */
  when?: readonly ArgumentTest[];
  x64: Numbers;
  arm64: Numbers;
};

/** As Linux numbers them on these architectures. */
export const errorNumbers = {
  EPERM: 1,
  EINVAL: 22,
  ENOSYS: 38,
  EPROTONOSUPPORT: 93,
  EAFNOSUPPORT: 97,
} as const;

const newUser = 0x10000000;
const family = { unix: 1, inet: 2, inet6: 10, netlink: 16 } as const;
const netlinkProtocol = { route: 0, socketDiagnosis: 4, deviceEvents: 15 } as const;
const [setLease, setDelegation] = [1024, 1040];

/** Newer calls have the same numbers everywhere. */
const everywhere = (...numbers: number[]) => ({
  x64: { bits64: numbers, bits32: numbers },
  arm64: { bits64: numbers, bits32: numbers },
});

export const refusals: readonly Refusal[] = [
  {
    calls: "clone3",
    why: "its flags are in memory, which a filter cannot read; programs fall back to clone",
    error: "ENOSYS",
    ...everywhere(435),
  },
  {
    calls: "io_uring",
    why: "it does what other calls do past this filter, and opened kernels more often than any other",
    error: "ENOSYS",
    ...everywhere(425, 426, 427),
  },
  {
    calls: "clone, unshare with a user namespace",
    why: "a command would be root over namespaces of its own, behind which most weaknesses lie",
    error: "EPERM",
    when: [{ argument: 0, is: "withBits", values: [newUser] }],
    x64: { bits64: [56, 272], bits32: [120, 310] },
    arm64: { bits64: [220, 97], bits32: [120, 337] },
  },
  {
    calls: "add_key, request_key, keyctl",
    why: "keys belong to a user of the kernel, which all sandboxes are",
    error: "EPERM",
    x64: { bits64: [248, 249, 250], bits32: [286, 287, 288] },
    arm64: { bits64: [217, 218, 219], bits32: [309, 310, 311] },
  },
  {
    calls: "bpf, perf_event_open, userfaultfd",
    why: "they look into the kernel, or stop it in the middle of its work",
    error: "EPERM",
    x64: { bits64: [321, 298, 323], bits32: [357, 336, 374] },
    arm64: { bits64: [280, 241, 282], bits32: [386, 364, 388] },
  },
  {
    calls: "fanotify_init",
    why: "128 groups are all that one user of the kernel has",
    error: "EPERM",
    x64: { bits64: [300], bits32: [338] },
    arm64: { bits64: [262], bits32: [367] },
  },
  {
    calls: "io_setup",
    why: "65,536 requests are all that a machine has; programs fall back to threads",
    error: "ENOSYS",
    x64: { bits64: [206], bits32: [245] },
    arm64: { bits64: [0], bits32: [243] },
  },
  {
    calls: "memfd_secret",
    why: "it splits the kernel's own map of memory, which slows the whole machine for good",
    error: "ENOSYS",
    ...everywhere(447),
  },
  {
    calls: "modify_ldt",
    why: "only 16-bit programs need it, and it opened kernels before; arm64 has none",
    error: "ENOSYS",
    x64: { bits64: [154], bits32: [123] },
    arm64: { bits64: [], bits32: [] },
  },
  {
    calls: "fcntl with F_SETLEASE, F_SETDELEG",
    why: "who opens a leased file waits 45 s for its holder: so does a save of the sandbox, file by file",
    error: "EINVAL",
    when: [{ argument: 1, is: "oneOf", values: [setLease, setDelegation] }],
    x64: { bits64: [72], bits32: [55, 221] },
    arm64: { bits64: [25], bits32: [55, 221] },
  },
  {
    calls: "socket, socketpair of a family but UNIX, IPv4, IPv6 and netlink",
    why: "vsock leads to the hypervisor past any network namespace; the rest is code that commands do not need",
    error: "EAFNOSUPPORT",
    when: [{ argument: 0, is: "noneOf", values: Object.values(family) }],
    x64: { bits64: [41, 53], bits32: [359, 360] },
    arm64: { bits64: [198, 199], bits32: [281, 288] },
  },
  {
    calls: "socket of netlink but for routes, sockets and device events",
    why: "the others are for administrators, and asking them loads modules into the kernel",
    error: "EPROTONOSUPPORT",
    when: [
      { argument: 0, is: "oneOf", values: [family.netlink] },
      { argument: 2, is: "noneOf", values: Object.values(netlinkProtocol) },
    ],
    x64: { bits64: [41], bits32: [359] },
    arm64: { bits64: [198], bits32: [281] },
  },
  {
    calls: "socketcall",
    why: "its family is in memory, which a filter cannot read; socket does the same",
    error: "ENOSYS",
    x64: { bits64: [], bits32: [102] },
    arm64: { bits64: [], bits32: [] },
  },
];
