/**
 * Owns what the agent gives up before it serves: capabilities, new privileges, keys, the right to be looked into.
 * Does not own the user that commands run as: the agent sets it for each one.
 */
import { constants } from "node:os";
import { handleNot, leaveKeyring, prctl, setCapabilities } from "./kernel.ts";
import { filterSystemCalls } from "./seccomp.ts";

/** What an agent that is root needs for commands of another user and their files; nothing to mount or trace with. */
const kept = {
  chown: 0,
  dacOverride: 1,
  fowner: 3,
  fsetid: 4,
  kill: 5,
  setgid: 6,
  setuid: 7,
} as const;

const option = {
  setDumpable: 4,
  dropFromBoundingSet: 24,
  setNoNewPrivileges: 38,
  ambient: 47,
} as const;

const ambientClearAll = 4;
/** The kernel refuses numbers above its last capability; 64 is what the mask can hold. */
const capabilityMax = 64;

/** What the runtime handles to report its own crash. A crash ends it without them too. */
const { SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS } = constants.signals;
const ofCrashes = [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS];

export function giveUpPrivileges(user: "own" | "mapped"): void {
  leaveKeyring();
  prctl(option.setNoNewPrivileges, 1);
  prctl(option.ambient, ambientClearAll);
  const keep = user === "own" ? Object.values(kept) : [];
  for (let capability = 0; capability < capabilityMax; capability += 1) {
    if (keep.some((one) => one === capability)) continue;
    if (!dropFromBoundingSet(capability)) break;
  }
  const mask = keep.reduce((sum, capability) => sum | (1n << BigInt(capability)), 0n);
  setCapabilities(mask, 0n);
  filterSystemCalls();
  // Its commands are its own user here: whatever it handles, they could end it by.
  if (user === "mapped") ofCrashes.forEach(handleNot);
  // Last: a change of credentials may set it again.
  prctl(option.setDumpable, 0);
}

function dropFromBoundingSet(capability: number): boolean {
  try {
    prctl(option.dropFromBoundingSet, capability);
    return true;
  } catch (error) {
    // Capability 0 exists everywhere: a failure there is a missing right, later ones are the end of the list.
    if (capability <= capabilityKnownEverywhere) throw error;
    return false;
  }
}

/** CAP_AUDIT_READ, of Linux 3.16. */
const capabilityKnownEverywhere = 37;
