/** The files of a sandbox: a tree that is live by watch, a view or an editor, uploads by dropping, downloads. */
import { useEffect, useState } from "preact/hooks";
import type { FileInfo } from "../../client/index.ts";
import type { TabProps } from "../pages/sandbox-page.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { formatBytes } from "../parts/format.ts";
import { quote, SameAs } from "../parts/same-as.tsx";
import { useRights } from "../parts/session.ts";
import { usePolled } from "../parts/use-polled.ts";
import { FileView } from "./file-view.tsx";

const root = "/workspace";
/** Changes of this long are gathered before the folder is read again. */
const gatherMs = 300;

export function FilesTab({ sandbox }: TabProps) {
  const [folder, setFolder] = useState(root);
  const [chosen, setChosen] = useState<string>();
  const [sending, setSending] = useState<{ name: string; done: number; total: number }>();
  const [error, setError] = useState<unknown>();
  const [isOver, setOver] = useState(false);
  const mayDo = useRights();
  const list = usePolled((signal) => sandbox.files.list(folder, { signal }), { key: folder });
  useWatch(sandbox, folder, list.refresh);
  const upload = async (files: File[]) => {
    setError(undefined);
    try {
      for (const file of files) {
        const progress = (done: number) => setSending({ name: file.name, done, total: file.size });
        await sandbox.files.write(`${folder}/${file.name}`, file, {
          progress: ({ bytes }) => progress(bytes),
        });
      }
      await list.refresh();
    } catch (thrown) {
      setError(thrown);
    }
    setSending(undefined);
  };
  const entries = [...(list.value ?? [])].sort(foldersFirst);
  const shown = entries.find(({ path }) => path === chosen);
  return (
    <div class="card">
      <div class="row">
        <strong class="mono grow">{folder}</strong>
        {mayDo("files") && (
          <label class="inline">
            Upload
            <input
              type="file"
              multiple
              onChange={(event) => void upload([...(event.currentTarget.files ?? [])])}
            />
          </label>
        )}
      </div>
      {sending !== undefined && (
        <p>
          {sending.name}: {formatBytes(sending.done)} of {formatBytes(sending.total)}
          <progress value={sending.done} max={sending.total} aria-label="Sent" />
        </p>
      )}
      <ErrorNote error={error} what="The upload" />
      <ErrorNote error={list.error} what="Reading the folder" />
      <div class="files">
        <section
          aria-label="Entries"
          class={`tree ${isOver ? "drop" : ""}`}
          onDragOver={(event) => {
            event.preventDefault();
            setOver(true);
          }}
          onDragLeave={() => setOver(false)}
          onDrop={(event) => {
            event.preventDefault();
            setOver(false);
            if (mayDo("files")) void upload([...(event.dataTransfer?.files ?? [])]);
          }}
        >
          {folder !== "/" && (
            <button type="button" onClick={() => setFolder(parentOf(folder))}>
              ↑ ..
            </button>
          )}
          {entries.map((entry) => (
            <button
              key={entry.path}
              type="button"
              aria-current={entry.path === chosen}
              onClick={() =>
                entry.kind === "folder" ? setFolder(entry.path) : setChosen(entry.path)
              }
            >
              {entry.kind === "folder" ? "▸ " : ""}
              {nameOf(entry.path)}
            </button>
          ))}
          {list.value?.length === 0 && (
            <p class="quiet">{mayDo("files") ? "Empty. Drop files here." : "Empty."}</p>
          )}
        </section>
        {shown === undefined ? (
          <p class="empty">Choose a file to see it.</p>
        ) : (
          <FileView key={shown.path} sandbox={sandbox} file={shown} onChanged={list.refresh} />
        )}
      </div>
      <SameAs
        verb="listFiles"
        of={{ id: sandbox.id }}
        query={{ path: folder }}
        command={`berth cp ${quote(`${sandbox.id}:${folder}`)} .`}
        sdk={`await sandbox.files.list(${JSON.stringify(folder)})`}
      />
    </div>
  );
}

function useWatch(
  sandbox: TabProps["sandbox"],
  folder: string,
  refresh: () => Promise<void>,
): void {
  useEffect(() => {
    const ended = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const later = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        void refresh();
      }, gatherMs);
    };
    const watch = async () => {
      const options = { recursive: false, signal: ended.signal };
      for await (const event of sandbox.files.watch(folder, options)) {
        if (event.type !== "ready") later();
      }
    };
    // Without the watch the folder is read when it is opened; its own error says why.
    watch().catch(() => {});
    return () => {
      ended.abort();
      clearTimeout(timer);
    };
  }, [sandbox, folder, refresh]);
}

const nameOf = (path: string) => path.split("/").at(-1) ?? path;
const parentOf = (path: string) => path.split("/").slice(0, -1).join("/") || "/";
const foldersFirst = (a: FileInfo, b: FileInfo) =>
  Number(b.kind === "folder") - Number(a.kind === "folder") || (a.path < b.path ? -1 : 1);
