/** Shows why a call failed, what to do, and the id under which the server's log has it. */
import { BerthError } from "../../client/index.ts";

export function ErrorNote({ error, what }: { error: unknown; what?: string }) {
  if (error === undefined || error === null) return null;
  const known = error instanceof BerthError ? error : undefined;
  const message = error instanceof Error ? error.message : String(error);
  return (
    <div class="error" role="alert">
      <strong>{what === undefined ? "Error" : `${what} failed`}</strong>
      <span>{message}</span>
      {known?.hint !== undefined && <span class="hint">{known.hint}</span>}
      <span class="quiet">
        {known?.code}
        {known?.requestId !== undefined && ` · request ${known.requestId}`}
      </span>
    </div>
  );
}
