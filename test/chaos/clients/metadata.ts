/**
 * Owns the client that counts up in a key of the metadata that it alone writes, half of the time under a condition.
 */
import type { ClientMaker } from "../harness.ts";
import type { Version, Write } from "../history.ts";
import { mayBe } from "./files.ts";

export const metadata: ClientMaker = (desk) => {
  const known = new Map<string, number>();
  let count = 0;
  return async () => {
    const box = desk.box();
    if (desk.random.chance(0.2)) {
      const allowed = mayBe(desk.history.metadata, box, desk.name);
      const read = await desk.ask("metadata", box, (sandbox) => sandbox.metadata());
      if (read.outcome !== "ack") return;
      known.set(box, read.value.version);
      const got = read.value.metadata[desk.name] ?? "absent";
      desk.history.reads.push({ client: desk.name, what: "metadata", box, allowed, got });
      return;
    }
    count += 1;
    const write: Write = { box, name: desk.name, value: String(count), outcome: "unknown" };
    desk.history.metadata.push(write);
    const version = known.get(box);
    const options = version !== undefined && desk.random.chance(0.5) ? { ifMatch: version } : {};
    const told = await desk.ask("patch", box, (sandbox) =>
      sandbox.patchMetadata({ [desk.name]: write.value }, options),
    );
    write.outcome = told.outcome;
    if (told.outcome !== "ack") {
      known.delete(box);
      return;
    }
    known.set(box, told.value.version);
    const taken: Version = { box, version: told.value.version, ...options };
    desk.history.versions.push(taken);
  };
};
