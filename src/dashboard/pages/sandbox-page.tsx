/** One sandbox: its state, its actions, and a tab for each of its parts. */
import type { ComponentType } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Sandbox, SandboxInfo } from "../../client/index.ts";
import { berth } from "../api.ts";
import { Action } from "../parts/action.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { formatCountdown, formatScope } from "../parts/format.ts";
import { lazy } from "../parts/lazy.tsx";
import { addressOf } from "../parts/router.ts";
import { useRights } from "../parts/session.ts";
import { StateBadge } from "../parts/state-badge.tsx";
import { useNow, usePolled } from "../parts/use-polled.ts";

/** What each tab is given. `refresh` reads the sandbox again after a call that changes it. */
export type TabProps = { sandbox: Sandbox; info: SandboxInfo; refresh: () => Promise<void> };

const tabs: Record<string, [title: string, Tab: ComponentType<TabProps>]> = {
  overview: ["Overview", lazy(async () => (await import("../tabs/overview-tab.tsx")).OverviewTab)],
  terminals: [
    "Terminals",
    lazy(async () => (await import("../tabs/terminals-tab.tsx")).TerminalsTab),
  ],
  processes: [
    "Processes",
    lazy(async () => (await import("../tabs/processes-tab.tsx")).ProcessesTab),
  ],
  files: ["Files", lazy(async () => (await import("../tabs/files-tab.tsx")).FilesTab)],
  ports: ["Ports", lazy(async () => (await import("../tabs/ports-tab.tsx")).PortsTab)],
  lease: ["Lease", lazy(async () => (await import("../tabs/lease-tab.tsx")).LeaseTab)],
  checkpoints: [
    "Checkpoints",
    lazy(async () => (await import("../tabs/checkpoints-tab.tsx")).CheckpointsTab),
  ],
  metadata: ["Metadata", lazy(async () => (await import("../tabs/metadata-tab.tsx")).MetadataTab)],
  settings: ["Settings", lazy(async () => (await import("../tabs/settings-tab.tsx")).SettingsTab)],
  metrics: ["Metrics", lazy(async () => (await import("../tabs/metrics-tab.tsx")).MetricsTab)],
  events: ["Events", lazy(async () => (await import("../tabs/events-tab.tsx")).EventsTab)],
};

const readMs = 3000;

export function SandboxPage({ id, tab }: { id: string; tab: string }) {
  const sandbox = useMemo(() => berth.sandbox(id), [id]);
  const {
    value: info,
    error,
    refresh,
  } = usePolled((signal) => sandbox.get({ signal }), { everyMs: readMs, key: id });
  if (info === undefined) {
    return error === undefined ? (
      <p class="quiet">Reading …</p>
    ) : (
      <ErrorNote error={error} what="Reading the sandbox" />
    );
  }
  const [, Tab] = tabs[tab] ?? [];
  return (
    <>
      <div class="row">
        <h1>{formatScope(info.scope) || id}</h1>
        <StateBadge state={info.state} reason={info.reason} />
        <Deadline info={info} />
        <span class="grow" />
        <Actions sandbox={sandbox} info={info} refresh={refresh} />
      </div>
      <ErrorNote error={error} what="Reading the sandbox" />
      <nav class="tabs" aria-label="Parts of the sandbox">
        {Object.entries(tabs).map(([name, [title]]) => (
          <a
            key={name}
            href={addressOf(["sandboxes", id, name])}
            aria-current={name === tab ? "page" : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      {Tab === undefined ? (
        <p class="card empty">There is no such part.</p>
      ) : (
        <Tab sandbox={sandbox} info={info} refresh={refresh} />
      )}
    </>
  );
}

/** The server counts idleness from the last work, which it does not say: the time that is left is at most this. */
function Deadline({ info }: { info: SandboxInfo }) {
  const now = useNow();
  const [readAt, setReadAt] = useState(now);
  useEffect(() => setReadAt(Date.now()), [info.stateSince, info.state]);
  const parts: string[] = [];
  if (info.maxLifetimeMs !== undefined) {
    const end = Date.parse(info.createdAt) + info.maxLifetimeMs;
    parts.push(`ends in ${formatCountdown(end - now)}`);
  }
  if (info.state === "running" && info.onIdle !== "none") {
    parts.push(`${info.onIdle}s ${formatCountdown(info.idleTimeoutMs)} after its last work`);
  } else if (info.state !== "running") {
    parts.push(`for ${formatCountdown(now - Math.min(readAt, Date.parse(info.stateSince)))}`);
  }
  return <span class="quiet">{parts.join(" · ")}</span>;
}

function Actions({ sandbox, info, refresh }: TabProps) {
  const [isDestroying, setDestroying] = useState(false);
  const mayDo = useRights();
  if (!mayDo("lifecycle") || info.state === "destroyed") return null;
  const then = (call: () => Promise<unknown>) => async () => {
    await call();
    await refresh();
  };
  const canStart = info.state === "paused" || info.state === "failed";
  return (
    <>
      {canStart && (
        <Action class="primary" run={then(() => sandbox.start())}>
          Start
        </Action>
      )}
      {info.state === "running" && <Action run={then(() => sandbox.stop())}>Pause</Action>}
      <button type="button" onClick={() => setDestroying(true)}>
        Destroy …
      </button>
      {isDestroying && (
        <Dialog
          title="Destroy this sandbox"
          action="Destroy"
          isDangerous
          confirm={sandbox.id.slice(0, 6)}
          onClose={() => setDestroying(false)}
          onAction={then(() => sandbox.delete())}
        >
          <p>Its files, checkpoints and logs are removed for good.</p>
          {info.lease !== undefined && (
            <p>
              <strong>{info.lease.holder}</strong> holds its lease, so Berth will refuse: break the
              lease first.
            </p>
          )}
        </Dialog>
      )}
    </>
  );
}
