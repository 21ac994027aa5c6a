/** A modal dialog. The browser keeps the focus inside and closes it by Escape. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ErrorNote } from "./error-note.tsx";

type DialogProps = {
  title: string;
  /** The word on the button that acts. */
  action: string;
  onClose: () => void;
  /** The dialog closes when it resolves, and shows why it rejects. */
  onAction: () => Promise<unknown>;
  isDangerous?: boolean;
  /** The action needs this text typed. */
  confirm?: string;
  children?: ComponentChildren;
};

export function Dialog(props: DialogProps) {
  const { title, action, onClose, onAction, isDangerous = false, confirm, children } = props;
  const element = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    element.current?.showModal();
  }, []);
  const act = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await onAction();
      onClose();
    } catch (thrown) {
      setError(thrown);
      setBusy(false);
    }
  };
  return (
    <dialog ref={element} onClose={onClose} aria-labelledby="dialog-title">
      <form onSubmit={act}>
        <h2 id="dialog-title">{title}</h2>
        {children}
        {confirm !== undefined && (
          <label>
            Type <code>{confirm}</code> to continue
            <input
              value={typed}
              autocomplete="off"
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </label>
        )}
        <ErrorNote error={error} what={action} />
        <div class="row end">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            class={isDangerous ? "danger" : "primary"}
            disabled={isBusy || (confirm !== undefined && typed !== confirm)}
          >
            {isBusy ? "Working …" : action}
          </button>
        </div>
      </form>
    </dialog>
  );
}
