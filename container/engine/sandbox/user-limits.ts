/** Decides the limits that the kernel counts for the user of a jail, who is one and the same in all of them as root. */
import type { CgroupControllers } from "../cgroups/controllers.ts";
import type { JailUser, UserLimits } from "../jail/jail-spec.ts";

/** What a machine has of groups and rights. */
export type LimitingMachine = {
  user: JailUser["kind"];
  cgroups: Pick<CgroupControllers, "memory" | "processes">;
  /** Whether agents can raise the limits of their user (CAP_SYS_RESOURCE). */
  raisesUserLimits: boolean;
  /** Whether the memory of pending signals and timers counts to a cgroup, as it does since Linux 5.15. */
  accountsSignals: boolean;
};

/** More than programs queue: they handle signals as they come. */
const pendingSignalsPerProcess = 4;

/**
 * Limits that the kernel counts for a user. A mapped user has a count of its own in each sandbox, which a limit keeps
 * to its share. All sandboxes of root are one user, and the first could use up every limit, so there is none where
 * a group, or the namespace, bounds the same.
 */
export function userLimitsOf(
  { user, cgroups, raisesUserLimits, accountsSignals }: LimitingMachine,
  { processes }: { processes: number },
): UserLimits {
  if (user === "mapped") {
    const pendingSignals = processes * pendingSignalsPerProcess;
    return { processes, pendingSignals, messageQueueBytes: "inherited" };
  }
  const unlimitedIf = (isBounded: boolean) =>
    raisesUserLimits && isBounded ? "unlimited" : "inherited";
  return {
    processes: unlimitedIf(cgroups.processes !== undefined),
    pendingSignals: unlimitedIf(cgroups.memory !== undefined && accountsSignals),
    // An IPC namespace has at most 256 queues of 80 KiB.
    messageQueueBytes: unlimitedIf(true),
  };
}
