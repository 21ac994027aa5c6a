/** Who holds the lease and until when, who waits in which order, and the way to break it. */
import { useState } from "preact/hooks";
import type { TabProps } from "../pages/sandbox-page.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { formatCountdown, formatSpan, formatTime } from "../parts/format.ts";
import { SameAs } from "../parts/same-as.tsx";
import { useRights } from "../parts/session.ts";
import { StateBadge } from "../parts/state-badge.tsx";
import { useNow, usePolled } from "../parts/use-polled.ts";

export function LeaseTab({ sandbox }: TabProps) {
  const {
    value: lease,
    error,
    refresh,
  } = usePolled((signal) => sandbox.lease.get({ signal }), {
    everyMs: 1000,
  });
  const [isBreaking, setBreaking] = useState(false);
  const [reason, setReason] = useState("");
  const mayDo = useRights();
  const now = useNow();
  if (lease === undefined) return <ErrorNote error={error} what="Reading the lease" />;
  return (
    <div class="card">
      <ErrorNote error={error} what="Reading the lease" />
      <div class="row">
        <StateBadge state={lease.state} reason={lease.reason} />
        <strong>{lease.holder ?? "Nobody holds it"}</strong>
        <span class="grow" />
        {lease.holder !== undefined && mayDo("admin") && (
          <button type="button" class="danger" onClick={() => setBreaking(true)}>
            Break …
          </button>
        )}
      </div>
      <dl>
        <dt>Fence</dt>
        <dd>{lease.fence}</dd>
        {lease.acquiredAt !== undefined && (
          <>
            <dt>Since</dt>
            <dd>{formatTime(lease.acquiredAt)}</dd>
          </>
        )}
        {lease.expiresAt !== undefined && (
          <>
            <dt>Expires unless renewed</dt>
            <dd>in {formatCountdown(Date.parse(lease.expiresAt) - now)}</dd>
          </>
        )}
      </dl>
      <h2>Queue</h2>
      {lease.waiters.length === 0 ? (
        <p class="quiet">Nobody waits. Who asks next gets the lease at once, or the first place.</p>
      ) : (
        <ol class="queue">
          {lease.waiters.map(({ holder, waitingMs }, index) => (
            <li key={`${index}-${holder}`}>
              {holder} <span class="quiet">for {formatSpan(waitingMs)}</span>
            </li>
          ))}
        </ol>
      )}
      {lease.waiterCount > lease.waiters.length && (
        <p class="quiet">and {lease.waiterCount - lease.waiters.length} more</p>
      )}
      <SameAs verb="getLease" of={{ id: sandbox.id }} sdk="await sandbox.lease.get()" />
      {isBreaking && (
        <Dialog
          title={`Break the lease of ${lease.holder}`}
          action="Break"
          isDangerous
          onClose={() => setBreaking(false)}
          onAction={async () => {
            await sandbox.lease.break(reason);
            await refresh();
          }}
        >
          <p>Its commands are ended, and the next in the queue gets the lease.</p>
          <label>
            Reason, which the holder sees
            <input
              required
              value={reason}
              onInput={(event) => setReason(event.currentTarget.value)}
            />
          </label>
        </Dialog>
      )}
    </div>
  );
}
