/** The images of the machine: what sandboxes can start from, pulls with their progress; changes are an administrator's. */
import { useState } from "preact/hooks";
import { BerthError } from "../../client/index.ts";
import type { Image } from "../../protocol/image.ts";
import { berth } from "../api.ts";
import { Action } from "../parts/action.tsx";
import { AdministratorForm, useAdministrator } from "../parts/administrator.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { formatBytes, formatTime } from "../parts/format.ts";
import { ResourceTable } from "../parts/resource-table.tsx";
import { SameAs } from "../parts/same-as.tsx";
import { StateBadge } from "../parts/state-badge.tsx";
import { usePolled } from "../parts/use-polled.ts";

export function ImagesPage() {
  const list = usePolled((signal) => berth.images.list({ signal }), { everyMs: 2000 });
  const administrator = useAdministrator();
  const [reference, setReference] = useState("");
  const isNowhere = list.error instanceof BerthError && list.error.code === "unsupported";
  const pull = async () => {
    await administrator?.images.pull(reference);
    setReference("");
    await list.refresh();
  };
  const remove = async (image: Image) => {
    await administrator?.images.remove(image.reference);
    await list.refresh();
  };
  return (
    <>
      <h1>Images</h1>
      {isNowhere ? (
        <div class="card empty">
          <p>{(list.error as BerthError).message}</p>
        </div>
      ) : (
        <section class="card">
          <ErrorNote error={list.error} what="Reading the images" />
          {administrator !== undefined && (
            <div class="row">
              <input
                class="grow mono"
                aria-label="Reference"
                placeholder="docker.io/library/python:3.12"
                value={reference}
                onInput={(event) => setReference(event.currentTarget.value.trim())}
              />
              <Action class="primary" run={pull} disabled={reference === ""}>
                Pull
              </Action>
            </div>
          )}
          <ResourceTable
            label="Images"
            rows={list.value ?? []}
            keyOf={(image) => image.reference}
            columns={[
              ["Reference", (image) => <code>{image.reference}</code>],
              ["State", ({ state, reason }) => <StateBadge state={state} reason={reason} />],
              ["Size", (image) => <Size image={image} />],
              ["In use by", ({ inUse }) => inUse ?? 0],
              ["Since", ({ pulledAt }) => (pulledAt === undefined ? "" : formatTime(pulledAt))],
            ]}
            actions={
              administrator === undefined
                ? undefined
                : (image) => (
                    <Action class="small" run={() => remove(image)}>
                      Remove
                    </Action>
                  )
            }
            empty={
              <>
                <p>No image yet: sandboxes have the programs of the machine.</p>
                <pre>berth image pull docker.io/library/python:3.12</pre>
              </>
            }
          />
          <AdministratorForm why="All tenants share the images, so an administrator pulls and removes them." />
        </section>
      )}
      <SameAs verb="listImages" command="berth image list" sdk="await berth.images.list()" />
    </>
  );
}

function Size({ image: { state, bytes, bytesTotal } }: { image: Image }) {
  if (state !== "pulling" || bytesTotal === undefined) return <>{formatBytes(bytes)}</>;
  return (
    <>
      {formatBytes(bytes)} of {formatBytes(bytesTotal)}
      <progress value={bytes} max={bytesTotal} aria-label="Pulled" />
    </>
  );
}
