/**
 * Owns the client that sends files up and fetches them again; each path has one writer.
 */
import { createHash } from "node:crypto";
import type { ClientMaker } from "../harness.ts";
import type { Write } from "../history.ts";

const pathsMax = 30;
const bytesMax = 60_000;

export const files: ClientMaker = (desk) => async () => {
  const box = desk.box();
  const name = `/workspace/f/${desk.name}-${desk.random.between(1, pathsMax)}`;
  if (desk.random.chance(0.6)) {
    const content = Buffer.alloc(desk.random.between(0, bytesMax), desk.mark());
    const write: Write = { box, name, value: hashOf(content), outcome: "unknown" };
    desk.history.files.push(write);
    const sent = await desk.ask("file up", box, (sandbox) =>
      sandbox.writeFile(name, content, { mkdirs: true }),
    );
    write.outcome = sent.outcome;
    return;
  }
  const allowed = mayBe(desk.history.files, box, name);
  const read = await desk.ask("file down", box, async (sandbox) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of (await sandbox.readFile(name)).body) chunks.push(chunk);
    return hashOf(Buffer.concat(chunks));
  });
  const isAbsent = read.outcome === "refused" && read.code === "file_not_found";
  if (read.outcome !== "ack" && !isAbsent) return;
  const got = read.outcome === "ack" ? read.value : "absent";
  desk.history.reads.push({ client: desk.name, what: `file ${name}`, box, allowed, got });
};

/** The last one that was acknowledged, or any whose end is not known: that may have come late, or come still. */
export function mayBe(writes: Write[], box: string, name: string): string[] {
  const own = writes.filter((write) => write.box === box && write.name === name);
  const last = own.findLast(({ outcome }) => outcome === "ack");
  const open = own.filter(({ outcome }) => outcome === "unknown" || outcome === "hung");
  return [last?.value ?? "absent", ...open.map(({ value }) => value)];
}

function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
