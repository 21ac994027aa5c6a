/** A button that calls the API, is busy meanwhile, and shows why it failed. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ErrorNote } from "./error-note.tsx";

type ActionProps = {
  run: () => Promise<unknown>;
  class?: string;
  title?: string;
  disabled?: boolean;
  children: ComponentChildren;
};

export function Action({ run, children, disabled = false, ...rest }: ActionProps) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const act = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await run();
    } catch (thrown) {
      setError(thrown);
    }
    setBusy(false);
  };
  return (
    <>
      <button type="button" {...rest} disabled={disabled || isBusy} onClick={act}>
        {children}
      </button>
      {error !== undefined && (
        <div class="toast">
          <ErrorNote error={error} what="The call" />
          <button type="button" class="small" onClick={() => setError(undefined)}>
            Close
          </button>
        </div>
      )}
    </>
  );
}
