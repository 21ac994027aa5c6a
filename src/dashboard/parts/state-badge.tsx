/** The state of a sandbox, a process or a commit as a word with a colour. */

const colours: Record<string, string> = {
  running: "good",
  committed: "good",
  starting: "busy",
  pausing: "busy",
  destroying: "busy",
  committing: "busy",
  failed: "bad",
  aborted: "bad",
};

export function StateBadge({ state, reason }: { state: string; reason?: string | undefined }) {
  return (
    <span class={`badge ${colours[state] ?? "calm"}`} title={reason}>
      {state}
      {reason === undefined ? "" : `: ${reason}`}
    </span>
  );
}
