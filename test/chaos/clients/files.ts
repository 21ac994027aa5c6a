/** A client that uploads files and downloads them again; each path has one writer. */
import { createHash } from "node:crypto";
import type { ClientMaker } from "../harness.ts";
import type { Write } from "../history.ts";

const pathsMax = 30;
const bytesMax = 60_000;

export const files: ClientMaker = (harness) => async () => {
  const sandboxId = harness.pickSandbox();
  const name = `/workspace/f/${harness.name}-${harness.random.between(1, pathsMax)}`;
  if (harness.random.chance(0.6)) {
    const content = Buffer.alloc(harness.random.between(0, bytesMax), harness.mark());
    const write: Write = { sandboxId, name, value: hashOf(content), outcome: "unknown" };
    harness.history.files.push(write);
    const sent = await harness.callSandbox("file up", sandboxId, (sandbox) =>
      sandbox.writeFile(name, content, { mkdirs: true }),
    );
    write.outcome = sent.outcome;
    return;
  }
  const allowed = possibleValues(harness.history.files, sandboxId, name);
  const read = await harness.callSandbox("file down", sandboxId, async (sandbox) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of (await sandbox.readFile(name)).body) chunks.push(chunk);
    return hashOf(Buffer.concat(chunks));
  });
  const isAbsent = read.outcome === "refused" && read.code === "file_not_found";
  if (read.outcome !== "ack" && !isAbsent) return;
  const got = read.outcome === "ack" ? read.value : "absent";
  harness.recordRead({ what: `file ${name}`, sandboxId, allowed, got });
};

/** The last acknowledged value, or any whose outcome is unknown: it may have been written late, or may still be. */
export function possibleValues(writes: Write[], sandboxId: string, name: string): string[] {
  const own = writes.filter((write) => write.sandboxId === sandboxId && write.name === name);
  const last = own.findLast(({ outcome }) => outcome === "ack");
  const open = own.filter(({ outcome }) => outcome === "unknown" || outcome === "hung");
  return [last?.value ?? "absent", ...open.map(({ value }) => value)];
}

function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
