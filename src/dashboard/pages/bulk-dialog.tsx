/** Pauses or destroys several sandboxes, and says which of them refused and why. */
import { useState } from "preact/hooks";
import { berth } from "../api.ts";
import type { Row } from "../fleet.ts";
import { Dialog } from "../parts/dialog.tsx";
import { formatScope } from "../parts/format.ts";

export type BulkVerb = "pause" | "destroy";

const callsAtOnce = 4;

type BulkDialogProps = { verb: BulkVerb; rows: readonly Row[]; onClose: () => void };

export function BulkDialog({ verb, rows, onClose }: BulkDialogProps) {
  const [done, setDone] = useState(0);
  const word = verb === "pause" ? "Pause" : "Destroy";
  const what = `${rows.length} ${rows.length === 1 ? "sandbox" : "sandboxes"}`;
  const act = async () => {
    const waiting = [...rows];
    const refused: string[] = [];
    const worker = async () => {
      for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) {
        const sandbox = berth.sandbox(row.id);
        try {
          await (verb === "pause" ? sandbox.stop() : sandbox.delete());
        } catch (error) {
          refused.push(`${row.id}: ${error instanceof Error ? error.message : error}`);
        }
        setDone((count) => count + 1);
      }
    };
    await Promise.all(Array.from({ length: callsAtOnce }, worker));
    if (refused.length > 0) throw new Error(`${refused.length} refused. ${refused.join(" ")}`);
  };
  return (
    <Dialog
      title={`${word} ${what}`}
      action={word}
      onClose={onClose}
      onAction={act}
      isDangerous={verb === "destroy"}
      {...(verb === "destroy" ? { confirm: `destroy ${rows.length}` } : {})}
    >
      <p>
        {verb === "pause"
          ? "Their files stay; what runs in them ends."
          : "Their files, checkpoints and logs are removed for good."}
      </p>
      <ul>
        {rows.slice(0, 8).map((row) => (
          <li key={row.id}>
            <code>{row.id}</code> {formatScope(row.scope)}
          </li>
        ))}
        {rows.length > 8 && <li>and {rows.length - 8} more</li>}
      </ul>
      {done > 0 && <progress value={done} max={rows.length} aria-label="Done" />}
    </Dialog>
  );
}
