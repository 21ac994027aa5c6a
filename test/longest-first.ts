/**
 * Starts the test files that take longest first, so that no worker is left with a minute of work at the end.
 */
import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { root } from "../container/launch/paths.js";

/** Files of more than 20 seconds by the JSON report of a whole run, longest first. */
const longest = [
  "test/system/server/keepalive.test.ts",
  "test/system/plans/plans.test.ts",
  "test/agent/channel/channel-deferred.test.ts",
  "test/system/runs/channel.test.ts",
  "test/system/client/live-lease.test.ts",
  "test/agent/exec/fence.test.ts",
  "test/agent/processes/process-name.test.ts",
  "test/security/fuzz.test.ts",
  "test/security/bodies.test.ts",
  "test/agent/exec/exec-end.test.ts",
  "test/security/inside.test.ts",
  "test/system/cli/sync/send.test.ts",
  "test/system/cli/run.test.ts",
  "test/system/api/contract.test.ts",
  "test/agent/archive/archive-ends.test.ts",
  "test/system/cli/exec.test.ts",
  "test/system/runs/runs-leaks.test.ts",
  "test/agent/sessions/session-end.test.ts",
  "test/system/cli/sync/repeated.test.ts",
  "test/chaos/chaos.test.ts",
  "test/system/files/workspace-trees.test.ts",
  "test/system/cli/lock.test.ts",
  "test/contract/sandbox-api.test.ts",
  "test/workerd/objects/events.test.ts",
  "test/workerd/objects/histories.test.ts",
];

const rankOf = new Map(longest.map((path, rank) => [path, rank]));

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) =>
      rankOf.get(relative(root, moduleId)) ?? longest.length;
    const sorted = await super.sort(files);
    return sorted.sort((a, b) => rank(a) - rank(b));
  }
}
