/** The metadata of a sandbox as lines of text. Saving changes only what was edited, if nobody else changed it. */
import { useState } from "preact/hooks";
import type { TabProps } from "../pages/sandbox-page.tsx";
import { Action } from "../parts/action.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { SameAs } from "../parts/same-as.tsx";
import { useRights } from "../parts/session.ts";
import { usePolled } from "../parts/use-polled.ts";

type Edit = { key: string; value: string; isRemoved: boolean };

export function MetadataTab({ sandbox }: TabProps) {
  const { value, error, refresh } = usePolled((signal) => sandbox.metadata.get({ signal }), {
    everyMs: 3000,
  });
  const [edits, setEdits] = useState<ReadonlyMap<string, Edit>>(new Map());
  const [added, setAdded] = useState({ key: "", value: "" });
  /** The version that the first edit was made on. */
  const [base, setBase] = useState<number>();
  const mayDo = useRights();
  if (value === undefined) return <ErrorNote error={error} what="Reading the metadata" />;
  const edit = (change: Edit) => {
    setBase(base ?? value.version);
    setEdits(new Map(edits).set(change.key, change));
  };
  const forget = () => {
    setEdits(new Map());
    setAdded({ key: "", value: "" });
    setBase(undefined);
  };
  const patch: Record<string, string | null> = {};
  for (const { key, value: text, isRemoved } of edits.values())
    patch[key] = isRemoved ? null : text;
  if (added.key !== "") patch[added.key] = added.value;
  const save = async () => {
    await sandbox.metadata.patch(patch, { ifMatch: base ?? value.version });
    forget();
    await refresh();
  };
  const canEdit = mayDo("files") || mayDo("lifecycle");
  const isOld = base !== undefined && base !== value.version;
  return (
    <div class="card">
      <ErrorNote error={error} what="Reading the metadata" />
      <p class="quiet">Version {value.version}</p>
      {isOld && (
        <p class="error" role="alert">
          Somebody changed the metadata meanwhile: saving will be refused. Discard your edits to see
          the new values.
        </p>
      )}
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col">Value</th>
              <th scope="col">Do</th>
            </tr>
          </thead>
          <tbody>
            {Object.entries(value.metadata).map(([key, stored]) => {
              const { value: text = stored, isRemoved = false } = edits.get(key) ?? {};
              return (
                <tr key={key}>
                  <td class="mono">{key}</td>
                  <td>
                    {canEdit ? (
                      <input
                        aria-label={`Value of ${key}`}
                        value={text}
                        disabled={isRemoved}
                        onInput={(event) =>
                          edit({ key, value: event.currentTarget.value, isRemoved: false })
                        }
                      />
                    ) : (
                      text
                    )}
                  </td>
                  <td>
                    {canEdit && (
                      <button
                        type="button"
                        class="small"
                        onClick={() => edit({ key, value: text, isRemoved: !isRemoved })}
                      >
                        {isRemoved ? "Keep" : "Remove"}
                      </button>
                    )}
                  </td>
                </tr>
              );
            })}
            {canEdit && (
              <tr>
                <td>
                  <input
                    aria-label="New key"
                    placeholder="key"
                    value={added.key}
                    onInput={(event) => setAdded({ ...added, key: event.currentTarget.value })}
                  />
                </td>
                <td>
                  <input
                    aria-label="New value"
                    placeholder="value"
                    value={added.value}
                    onInput={(event) => setAdded({ ...added, value: event.currentTarget.value })}
                  />
                </td>
                <td />
              </tr>
            )}
          </tbody>
        </table>
      </div>
      {canEdit && (
        <p class="row end">
          <button type="button" onClick={forget}>
            Discard
          </button>
          <Action class="primary" run={save} disabled={Object.keys(patch).length === 0}>
            Save
          </Action>
        </p>
      )}
      <SameAs
        verb="patchMetadata"
        of={{ id: sandbox.id }}
        body={patch}
        sdk={`await sandbox.metadata.patch(${JSON.stringify(patch)})`}
      />
    </div>
  );
}
