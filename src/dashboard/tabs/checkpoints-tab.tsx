/** The checkpoints of a sandbox as a timeline: save, restore, fork, remove. */
import { useState } from "preact/hooks";
import type { Checkpoint } from "../../client/index.ts";
import { berth } from "../api.ts";
import type { TabProps } from "../pages/sandbox-page.tsx";
import { Action } from "../parts/action.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { formatBytes, formatTime } from "../parts/format.ts";
import { addressOf } from "../parts/router.ts";
import { curlLine, SameAs } from "../parts/same-as.tsx";
import { useRights } from "../parts/session.ts";
import { usePolled } from "../parts/use-polled.ts";

export function CheckpointsTab({ sandbox, refresh }: TabProps) {
  const list = usePolled((signal) => sandbox.checkpoints.list({ signal }), { everyMs: 4000 });
  const [name, setName] = useState("");
  const [restoring, setRestoring] = useState<Checkpoint>();
  const mayDo = useRights();
  const save = async () => {
    await sandbox.checkpoints.create(name === "" ? undefined : name);
    setName("");
    await list.refresh();
  };
  const fork = async (from: string) => {
    const { id } = await berth.create({ from });
    location.hash = addressOf(["sandboxes", id]);
  };
  const checkpoints = list.value ?? [];
  return (
    <div class="card">
      {mayDo("files") && (
        <div class="row">
          <input
            class="grow"
            aria-label="Name"
            placeholder="A name, such as: before the upgrade"
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
          <Action class="primary" run={save}>
            Save a checkpoint
          </Action>
        </div>
      )}
      <ErrorNote error={list.error} what="Reading the checkpoints" />
      {checkpoints.length === 0 ? (
        <div class="empty">
          <p>
            A checkpoint keeps all files as they are now. Restore it, or fork new sandboxes from it.
          </p>
          <pre>berth checkpoint create before-the-upgrade</pre>
        </div>
      ) : (
        checkpoints.map((checkpoint) => (
          <div class="fork row" key={checkpoint.id}>
            <div class="grow two-lines">
              <strong>{checkpoint.name ?? "without a name"}</strong>
              <span class="quiet">
                {formatTime(checkpoint.createdAt)} · {formatBytes(checkpoint.bytes)} · saved in{" "}
                {checkpoint.tookMs} ms
                {checkpoint.inUse === undefined ? "" : ` · needed by a ${checkpoint.inUse}`}
              </span>
            </div>
            {mayDo("lifecycle") && (
              <>
                <Action class="small" run={() => fork(checkpoint.id)}>
                  Fork
                </Action>
                <button type="button" class="small" onClick={() => setRestoring(checkpoint)}>
                  Restore …
                </button>
                <Action
                  class="small"
                  disabled={checkpoint.inUse !== undefined}
                  run={async () => {
                    await sandbox.checkpoints.delete(checkpoint.id);
                    await list.refresh();
                  }}
                >
                  Remove
                </Action>
              </>
            )}
          </div>
        ))
      )}
      <SameAs
        curl={curlLine(
          "POST",
          `/v1/sandboxes/${sandbox.id}/checkpoints`,
          name === "" ? {} : { name },
        )}
        command="berth checkpoint create"
        sdk={`await sandbox.checkpoints.create(${name === "" ? "" : JSON.stringify(name)})`}
      />
      {restoring !== undefined && (
        <Dialog
          title={`Restore ${restoring.name ?? formatTime(restoring.createdAt)}`}
          action="Restore"
          isDangerous
          onClose={() => setRestoring(undefined)}
          onAction={async () => {
            await sandbox.checkpoints.restore(restoring.id);
            await refresh();
          }}
        >
          <p>What runs ends, and files that were written after the checkpoint are lost.</p>
        </Dialog>
      )}
    </div>
  );
}
