/** A client that counts up in a metadata key that only it writes, half of the time with a condition. */
import type { ClientMaker } from "../harness.ts";
import type { Write } from "../history.ts";
import { possibleValues } from "./files.ts";

export const metadata: ClientMaker = (harness) => {
  const known = new Map<string, number>();
  let count = 0;
  return async () => {
    const sandboxId = harness.pickSandbox();
    if (harness.random.chance(0.2)) {
      const allowed = possibleValues(harness.history.metadata, sandboxId, harness.name);
      const read = await harness.callSandbox("metadata", sandboxId, (sandbox) =>
        sandbox.metadata(),
      );
      if (read.outcome !== "ack") return;
      known.set(sandboxId, read.value.version);
      const got = read.value.metadata[harness.name] ?? "absent";
      harness.recordRead({ what: "metadata", sandboxId, allowed, got });
      return;
    }
    count += 1;
    const { name } = harness;
    const write: Write = { sandboxId, name, value: String(count), outcome: "unknown" };
    harness.history.metadata.push(write);
    const version = known.get(sandboxId);
    const options = version !== undefined && harness.random.chance(0.5) ? { ifMatch: version } : {};
    const result = await harness.callSandbox("patch", sandboxId, (sandbox) =>
      sandbox.patchMetadata({ [harness.name]: write.value }, options),
    );
    write.outcome = result.outcome;
    if (result.outcome !== "ack") {
      known.delete(sandboxId);
      return;
    }
    known.set(sandboxId, result.value.version);
    harness.history.versions.push({ sandboxId, version: result.value.version, ...options });
  };
};
