/** The checkpoints of a sandbox as a timeline: save, restore, fork, remove. */
import { useState } from "preact/hooks";
import type { Checkpoint, ListedSandbox } from "../../client/index.ts";
import { berth } from "../api.ts";
import type { TabProps } from "../pages/sandbox-page.tsx";
import { Action } from "../parts/action.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { formatBytes, formatScope, formatTime } from "../parts/format.ts";
import { addressOf } from "../parts/router.ts";
import { SameAs } from "../parts/same-as.tsx";
import { useRights } from "../parts/session.ts";
import { StateBadge } from "../parts/state-badge.tsx";
import { usePolled } from "../parts/use-polled.ts";

/** The most that one page of the list has. */
const listMax = 1000;

export function CheckpointsTab({ sandbox, info, refresh }: TabProps) {
  const list = usePolled((signal) => sandbox.checkpoints.list({ signal }), { everyMs: 4000 });
  const forks = usePolled((signal) => listForks(sandbox.id, signal), { everyMs: 10_000 });
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
  const remove = async (id: string) => {
    await sandbox.checkpoints.delete(id);
    await list.refresh();
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
      <ErrorNote error={forks.error} what="Reading the forks" />
      {checkpoints.length === 0 && info.from === undefined ? (
        <div class="empty">
          <p>
            A checkpoint keeps all files as they are now. Restore it, or fork new sandboxes from it.
          </p>
          <pre>await sandbox.checkpoints.create("before the upgrade")</pre>
        </div>
      ) : (
        <ol class="timeline" aria-label="Checkpoints, the newest first">
          {checkpoints.map((checkpoint) => (
            <li key={checkpoint.id}>
              <div class="row">
                <div class="grow two-lines">
                  <strong>{checkpoint.name ?? defaultName(checkpoint)}</strong>
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
                      run={() => remove(checkpoint.id)}
                    >
                      Remove
                    </Action>
                  </>
                )}
              </div>
              <Forks of={forks.value?.filter(({ from }) => from === checkpoint.id) ?? []} />
            </li>
          ))}
          {info.from !== undefined && <Origin checkpoint={info.from} />}
        </ol>
      )}
      {forks.value?.isCut === true && (
        <p class="quiet">Forks among the newest {listMax} sandboxes are shown.</p>
      )}
      <SameAs
        verb="makeCheckpoint"
        of={{ id: sandbox.id }}
        body={name === "" ? {} : { name }}
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

type Fork = Pick<ListedSandbox, "id" | "from" | "state" | "scope">;

/** An id of a checkpoint begins with the id of its sandbox. */
async function listForks(id: string, signal: AbortSignal): Promise<Fork[] & { isCut: boolean }> {
  const page = await berth.list({ limit: listMax, signal });
  const forks = page.filter(({ from }) => from?.startsWith(`${id}.`) === true);
  return Object.assign(forks, { isCut: page.nextCursor !== null });
}

function Forks({ of: forks }: { of: readonly Fork[] }) {
  if (forks.length === 0) return null;
  return (
    <ul class="forks" aria-label="Forks">
      {forks.map(({ id, state, scope }) => (
        <li key={id}>
          <a href={addressOf(["sandboxes", id, "checkpoints"])}>{formatScope(scope) || id}</a>{" "}
          <StateBadge state={state} />
        </li>
      ))}
    </ul>
  );
}

/** Where the first files of this sandbox came from. */
function Origin({ checkpoint }: { checkpoint: string }) {
  const source = checkpoint.split(".")[0] ?? "";
  return (
    <li>
      <strong>Forked from a checkpoint</strong> of{" "}
      <a class="mono" href={addressOf(["sandboxes", source, "checkpoints"])}>
        {source}
      </a>
    </li>
  );
}

const defaultName = ({ automatic }: Checkpoint) =>
  automatic === true ? "saved by itself" : "without a name";
