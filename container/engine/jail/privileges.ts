/**
 * Drops what the agent does not need before it serves: capabilities, new privileges, keys, and the right of others to
 * inspect it.
 */
import { constants } from "node:os";
import type { JailUser } from "./jail-spec.ts";
import { joinEmptyKeyring, prctl, resetSignalHandler, setCapabilities } from "./kernel.ts";
import { filterSystemCalls } from "./seccomp.ts";

/**
 * Capabilities that an agent running as root needs for the commands and files of another user; none to mount or
 * trace.
 */
const keptCapabilities = {
  chown: 0,
  dacOverride: 1,
  fowner: 3,
  fsetid: 4,
  kill: 5,
  setgid: 6,
  setuid: 7,
} as const;

const prctlOption = {
  setDumpable: 4,
  dropFromBoundingSet: 24,
  setNoNewPrivileges: 38,
  ambient: 47,
} as const;

const ambientClearAll = 4;
/** The kernel refuses numbers above its last capability; the mask holds 64. */
const capabilityMax = 64;

/** Signals that Bun handles to report its own crash. Without a handler a crash still ends it. */
const { SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS } = constants.signals;
const crashSignals = [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS];

/**
 * An agent outside of its commands' user namespace can gain nothing from a program of the sandbox: it starts none but
 * inside. They keep the right to gain privileges there, which sudo is.
 */
export function dropPrivileges(user: JailUser["kind"]): void {
  joinEmptyKeyring();
  if (user !== "ranged") prctl(prctlOption.setNoNewPrivileges, 1);
  prctl(prctlOption.ambient, ambientClearAll);
  const keep = user !== "mapped" ? Object.values(keptCapabilities) : [];
  for (let capability = 0; capability < capabilityMax; capability += 1) {
    if (keep.some((kept) => kept === capability)) continue;
    if (!dropFromBoundingSet(capability)) break;
  }
  // Before the capabilities: without `no_new_privs` it needs them.
  filterSystemCalls();
  const mask = keep.reduce((sum, capability) => sum | (1n << BigInt(capability)), 0n);
  setCapabilities(mask);
  // Commands run as the agent's own user here and could end it with any signal that it handles.
  if (user === "mapped") crashSignals.forEach(resetSignalHandler);
  // Last, because a change of credentials may set it again.
  prctl(prctlOption.setDumpable, 0);
}

function dropFromBoundingSet(capability: number): boolean {
  try {
    prctl(prctlOption.dropFromBoundingSet, capability);
    return true;
  } catch (error) {
    // A failure for a capability that every kernel has is a missing right; a later one is the end of the list.
    if (capability <= capabilityKnownEverywhere) throw error;
    return false;
  }
}

/** CAP_AUDIT_READ, since Linux 3.16. */
const capabilityKnownEverywhere = 37;
