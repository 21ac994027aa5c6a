/** One file: an image, a text in an editor, or its size. A save is refused if the file changed since it was read. */
import { useEffect, useRef, useState } from "preact/hooks";
import { BerthError, type FileInfo } from "../../client/index.ts";
import type { TabProps } from "../pages/sandbox-page.tsx";
import { Action } from "../parts/action.tsx";
import { type Editor, openEditor } from "../parts/editor.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { formatBytes, formatTime } from "../parts/format.ts";
import { useRights } from "../parts/session.ts";
import { usePolled } from "../parts/use-polled.ts";

const shownBytesMax = 2 * 1024 * 1024;
/** Without SVG, which can contain scripts. */
const imageTypes: Record<string, string> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
};

type FileViewProps = {
  sandbox: TabProps["sandbox"];
  file: FileInfo;
  onChanged: () => Promise<void>;
};

type Content = {
  bytes: Uint8Array<ArrayBuffer>;
  etag: string | undefined;
  text: string | undefined;
};

export function FileView({ sandbox, file, onChanged }: FileViewProps) {
  const isShown = file.size <= shownBytesMax;
  const content = usePolled(
    async (signal): Promise<Content | undefined> => {
      if (!isShown) return undefined;
      // The version is asked first: a write between the two makes the save fail instead of being lost.
      const { etag } = await sandbox.files.stat(file.path, { signal });
      const bytes = await sandbox.files.read(file.path, { signal });
      return { bytes, etag, text: textOf(bytes) };
    },
    { key: file.path },
  );
  const download = async () => {
    const bytes = await sandbox.files.read(file.path);
    const url = URL.createObjectURL(new Blob([bytes]));
    const link = document.createElement("a");
    link.href = url;
    link.download = file.path.split("/").at(-1) ?? "file";
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  };
  const { value } = content;
  const type = imageTypes[file.path.split(".").at(-1)?.toLowerCase() ?? ""];
  return (
    <div>
      <div class="row">
        <strong class="mono grow">{file.path}</strong>
        <span class="quiet">
          {formatBytes(file.size)} · {formatTime(file.modifiedAt)} · {file.mode}
        </span>
        <Action class="small" run={download}>
          Download
        </Action>
      </div>
      <ErrorNote error={content.error} what="Reading the file" />
      {!isShown && <p class="empty">Larger than {formatBytes(shownBytesMax)}: download it.</p>}
      {value !== undefined && type !== undefined && <Picture bytes={value.bytes} type={type} />}
      {value !== undefined && type === undefined && value.text === undefined && (
        <p class="empty">Not a text.</p>
      )}
      {value?.text !== undefined && type === undefined && (
        <TextEditor
          key={value.etag}
          sandbox={sandbox}
          path={file.path}
          text={value.text}
          etag={value.etag}
          onSaved={onChanged}
          onReload={content.refresh}
        />
      )}
    </div>
  );
}

type TextEditorProps = {
  sandbox: TabProps["sandbox"];
  path: string;
  text: string;
  etag: string | undefined;
  onSaved: () => Promise<void>;
  onReload: () => Promise<void>;
};

function TextEditor({ sandbox, path, text, etag, onSaved, onReload }: TextEditorProps) {
  const frame = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | undefined>(undefined);
  const known = useRef(etag);
  const [isChanged, setChanged] = useState(false);
  const [conflict, setConflict] = useState(false);
  const mayDo = useRights();
  const canEdit = mayDo("files");
  useEffect(() => {
    if (frame.current === null) return;
    const opened = openEditor(frame.current, {
      text,
      path,
      canEdit,
      onChange: () => setChanged(true),
    });
    editor.current = opened;
    return () => opened.close();
  }, [text, path, canEdit]);
  const save = async () => {
    const options = known.current === undefined ? {} : { ifMatch: known.current };
    try {
      const saved = await sandbox.files.write(path, editor.current?.text() ?? text, options);
      known.current = saved.etag;
      setChanged(false);
      setConflict(false);
      await onSaved();
    } catch (error) {
      const isConflict = error instanceof BerthError && error.code === "file_changed";
      if (!isConflict) throw error;
      setConflict(true);
    }
  };
  return (
    <>
      {conflict && (
        <div class="error" role="alert">
          <strong>The file changed since it was read</strong>
          <span>Nothing was saved. Copy what you need, then read it again.</span>
          <Action class="small" run={onReload}>
            Read it again
          </Action>
        </div>
      )}
      <div class="editor" ref={frame} />
      {canEdit && (
        <p class="row end">
          <Action class="primary" run={save} disabled={!isChanged}>
            Save
          </Action>
        </p>
      )}
    </>
  );
}

function Picture({ bytes, type }: { bytes: Uint8Array<ArrayBuffer>; type: string }) {
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes], { type }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [bytes, type]);
  return url === undefined ? null : <img class="preview" src={url} alt="The content of the file" />;
}

/** Undefined where the bytes are not UTF-8 or hold a zero. */
function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
