/** What runs all this: health, what isolates sandboxes and what is missing, counts, and who is signed in. */
import { useContext } from "preact/hooks";
import type { Health } from "../../protocol/health.ts";
import { limits } from "../../protocol/limits.ts";
import { berth, readHealth } from "../api.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { formatBytes, formatSpan, formatTime } from "../parts/format.ts";
import { ResourceTable } from "../parts/resource-table.tsx";
import { SameAs } from "../parts/same-as.tsx";
import { SessionContext } from "../parts/session.ts";
import { StateBadge } from "../parts/state-badge.tsx";
import { usePolled } from "../parts/use-polled.ts";

export function MachinePage() {
  const health = usePolled(readHealth, { everyMs: 5000 });
  const counts = usePolled((signal) => berth.counts({ signal }), { everyMs: 5000 });
  const session = useContext(SessionContext);
  const { value } = health;
  return (
    <>
      <div class="row">
        <h1>Machine</h1>
        {value !== undefined && <StateBadge state={value.status} />}
      </div>
      <ErrorNote error={health.error} what="Reading the health" />
      <ErrorNote error={counts.error} what="Reading the counts" />
      <div class="grid">
        <section class="card">
          <h2>Server</h2>
          <dl>
            <dt>Version</dt>
            <dd>{value?.version}</dd>
            <dt>Engine</dt>
            <dd>{value?.engine}</dd>
            {isolationFacts(value).map(([name, fact]) => (
              <>
                <dt key={name}>{name}</dt>
                <dd>{String(fact)}</dd>
              </>
            ))}
          </dl>
        </section>
        <section class="card">
          <h2>What is missing</h2>
          {value?.missing.length === 0 ? (
            <p class="quiet">Nothing: this machine offers all that isolates sandboxes.</p>
          ) : (
            <ul>
              {value?.missing.map((sentence) => (
                <li key={sentence}>{sentence}</li>
              ))}
            </ul>
          )}
        </section>
        <section class="card">
          <h2>Sandboxes of {session?.tenant}</h2>
          <dl>
            {Object.entries(counts.value?.states ?? {}).map(([state, count]) => (
              <>
                <dt key={state}>{state}</dt>
                <dd>{count}</dd>
              </>
            ))}
            <dt>All</dt>
            <dd>{counts.value?.total}</dd>
          </dl>
          {counts.value?.quota !== undefined && (
            <p class="quiet">
              Allowed:{" "}
              {Object.entries(counts.value.quota)
                .map(([name, number]) => `${name} ${number}`)
                .join(", ")}
            </p>
          )}
        </section>
        {value?.disk !== undefined && (
          <section class="card">
            <h2>Disk</h2>
            <dl>
              <dt>Free</dt>
              <dd>{formatBytes(value.disk.freeBytes)}</dd>
              <dt>Full below</dt>
              <dd>{formatBytes(value.disk.floorBytes)}</dd>
            </dl>
          </section>
        )}
        <section class="card">
          <h2>Limits</h2>
          <ResourceTable
            label="Limits"
            rows={shownLimits}
            keyOf={([title]) => title}
            columns={[
              ["What", ([title]) => title],
              ["At most", ([, text]) => text],
            ]}
          />
        </section>
        <section class="card">
          <h2>Signed in</h2>
          <dl>
            <dt>As</dt>
            <dd>{session?.name}</dd>
            <dt>Rights</dt>
            <dd>{session?.rights.join(", ")}</dd>
            <dt>Until</dt>
            <dd>{session === undefined ? "" : formatTime(session.expiresAt)}</dd>
          </dl>
        </section>
      </div>
      <SameAs verb="countSandboxes" sdk="await berth.counts()" />
    </>
  );
}

/** Those that a person meets first; docs/operate/limits.md has all. */
const shownLimits: [string, string][] = [
  ["Body of a call", formatBytes(limits.bodyBytesMax)],
  ["Upload of a file", formatBytes(limits.fileBytesMax)],
  ["Output of an exec", formatBytes(limits.execOutputMaxBytes)],
  ["Stored log of a process", formatBytes(limits.processLogMaxBytes)],
  ["Checkpoints of a sandbox", String(limits.checkpointsMax)],
  ["Services of a sandbox", String(limits.servicesMax)],
  ["Waiters for a lease", String(limits.leaseWaitersMax)],
  ["Idle time", formatSpan(limits.idleTimeoutMaxMs)],
];

function isolationFacts(health: Health | undefined): [string, unknown][] {
  const { engine: _, ...facts } = health?.isolation ?? { engine: undefined };
  return Object.entries(facts);
}
