/** The page of all sandboxes: a live list with search and filters, which stand in the address. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { berth } from "../api.ts";
import { Fleet, type Row } from "../fleet.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { formatBytes, formatScope, formatSpan } from "../parts/format.ts";
import { addressOf, replaceAddress } from "../parts/router.ts";
import { Rows } from "../parts/rows.tsx";
import { SameAs } from "../parts/same-as.tsx";
import { useRights } from "../parts/session.ts";
import { Sparkline } from "../parts/sparkline.tsx";
import { StateBadge } from "../parts/state-badge.tsx";
import { useNow } from "../parts/use-polled.ts";
import { BulkDialog, type BulkVerb } from "./bulk-dialog.tsx";
import { CreateDialog } from "./create-dialog.tsx";

const states = ["running", "starting", "pausing", "paused", "failed", "destroying"];
const rowPx = 52;
/** The lists show neither leases nor what is used, so rows in sight that run are read this often. */
const watchMs = 5000;

export function FleetPage({ query }: { query: URLSearchParams }) {
  const [, redraw] = useState(0);
  const fleet = useRef<Fleet | undefined>(undefined);
  useEffect(() => {
    const made = new Fleet(berth, () => redraw((count) => count + 1));
    fleet.current = made;
    return () => made.end();
  }, []);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [dialog, setDialog] = useState<"create" | BulkVerb>();
  const mayDo = useRights();
  const now = useNow(5000);
  const rows = fleet.current?.rows ?? [];
  const search = query.get("q") ?? "";
  const state = query.get("state") ?? "";
  const matching = useMemo(() => rows.filter(matcher(search, state)), [rows, search, state]);
  useWatch(fleet.current, matching);
  const chosen = matching.filter(({ id }) => selected.has(id));
  const set = (name: string, value: string) => {
    const next = new URLSearchParams(query);
    if (value === "") next.delete(name);
    else next.set(name, value);
    replaceAddress(["sandboxes"], next);
  };
  const toggle = (id: string, isOn: boolean) => {
    const next = new Set(selected);
    if (isOn) next.add(id);
    else next.delete(id);
    setSelected(next);
  };
  return (
    <>
      <div class="row">
        <h1>Sandboxes</h1>
        <span class="quiet">
          {matching.length === rows.length ? rows.length : `${matching.length} of ${rows.length}`}
          {fleet.current?.isComplete === true ? "" : " · loading"}
        </span>
        <span class="grow" />
        {mayDo("lifecycle") && (
          <button type="button" class="primary" onClick={() => setDialog("create")}>
            Create
          </button>
        )}
      </div>
      <ErrorNote error={fleet.current?.error} what="Reading the list" />
      <div class="card">
        <div class="row">
          <input
            class="grow"
            type="search"
            aria-label="Search"
            placeholder="Search by id, scope, maker, image, metadata"
            value={search}
            onInput={(event) => set("q", event.currentTarget.value)}
          />
          <select
            aria-label="State"
            value={state}
            onChange={(event) => set("state", event.currentTarget.value)}
          >
            <option value="">All states</option>
            {states.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
          {mayDo("lifecycle") && chosen.length > 0 && (
            <>
              <button type="button" onClick={() => setDialog("pause")}>
                Pause {chosen.length}
              </button>
              <button type="button" class="danger" onClick={() => setDialog("destroy")}>
                Destroy {chosen.length}
              </button>
            </>
          )}
        </div>
        {fleet.current?.isComplete === true && rows.length === 0 ? (
          <Empty />
        ) : (
          <>
            <div class="list-row list-head" aria-hidden="true">
              <span />
              <span>Sandbox</span>
              <span>State</span>
              <span class="wide">Processor</span>
              <span class="wide">Memory</span>
              <span class="wide">Lease</span>
              <span class="wide">Made by</span>
              <span class="wide">Age</span>
              <span class="wide">If idle</span>
            </div>
            <Rows
              items={matching}
              rowPx={rowPx}
              label="Sandboxes"
              keyOf={({ id }) => id}
              onShown={(shown) => {
                visible.current = shown;
              }}
              draw={(row) => (
                <SandboxRow
                  row={row}
                  now={now}
                  isSelected={selected.has(row.id)}
                  onSelect={(isOn) => toggle(row.id, isOn)}
                />
              )}
            />
          </>
        )}
      </div>
      <SameAs
        verb="listSandboxes"
        query={{ limit: 100 }}
        command="berth list --all"
        sdk="await berth.list({ limit: 100 })"
      />
      {dialog === "create" && <CreateDialog onClose={() => setDialog(undefined)} />}
      {(dialog === "pause" || dialog === "destroy") && (
        <BulkDialog
          verb={dialog}
          rows={chosen}
          onClose={() => {
            setDialog(undefined);
            setSelected(new Set());
          }}
        />
      )}
    </>
  );
}

/** The rows that a person can see now. */
const visible: { current: readonly Row[] } = { current: [] };

function useWatch(fleet: Fleet | undefined, rows: readonly Row[]): void {
  const hasRows = rows.length > 0;
  useEffect(() => {
    if (fleet === undefined || !hasRows) return;
    const read = () => {
      const running = visible.current.filter(({ state }) => state === "running");
      if (!document.hidden) fleet.watch(running.map(({ id }) => id));
    };
    read();
    const timer = setInterval(read, watchMs);
    return () => clearInterval(timer);
  }, [fleet, hasRows]);
}

function matcher(search: string, state: string): (row: Row) => boolean {
  const words = search
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  return (row) => {
    if (state !== "" && row.state !== state) return false;
    if (words.length === 0) return true;
    const { scope } = row;
    const metadata = Object.entries(row.metadata).map(([name, value]) => `${name}=${value}`);
    const facts = [row.id, scope?.repo, scope?.branch, scope?.config, row.madeBy, row.image];
    const text = [...facts, row.state, row.reason, ...metadata].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  };
}

type SandboxRowProps = {
  row: Row;
  now: number;
  isSelected: boolean;
  onSelect: (isSelected: boolean) => void;
};

function SandboxRow({ row, now, isSelected, onSelect }: SandboxRowProps) {
  const scope = formatScope(row.scope);
  return (
    <>
      <span role="cell">
        <input
          type="checkbox"
          aria-label={`Select ${row.id}`}
          checked={isSelected}
          onChange={(event) => onSelect(event.currentTarget.checked)}
        />
      </span>
      <span role="cell" class="two-lines">
        <a href={addressOf(["sandboxes", row.id])} title={scope}>
          {scope === "" ? row.id : scope}
        </a>
        <span class="quiet mono">{scope === "" ? (row.image ?? "") : row.id}</span>
      </span>
      <span role="cell">
        <StateBadge state={row.state} reason={row.reason} />
      </span>
      <Usage usage={row.state === "running" ? row.usage : undefined} />
      <span role="cell" class="wide">
        {row.lease?.holder ?? <span class="quiet">free</span>}
      </span>
      <span role="cell" class="wide">
        {row.madeBy ?? ""}
      </span>
      <span role="cell" class="wide" title={row.createdAt}>
        {formatSpan(now - Date.parse(row.createdAt))}
      </span>
      <span role="cell" class="wide">
        {row.state === "running" && row.onIdle !== "none"
          ? `${row.onIdle}, ${formatSpan(row.idleTimeoutMs)}`
          : ""}
      </span>
    </>
  );
}

function Usage({ usage }: Pick<Row, "usage">) {
  const metrics = usage?.metrics ?? [];
  const newest = metrics.at(-1);
  const draw = (values: number[], max: number | undefined, text: string) => (
    <span role="cell" class="wide usage">
      {newest !== undefined && (
        <>
          {text}
          {values.length > 1 && <Sparkline values={values} max={max ?? Math.max(...values)} />}
        </>
      )}
    </span>
  );
  return (
    <>
      {draw(
        metrics.map(({ processors }) => processors),
        usage?.limits?.processors,
        `${Math.round((newest?.processors ?? 0) * 100)} %`,
      )}
      {draw(
        metrics.map(({ memoryBytes }) => memoryBytes),
        usage?.limits?.memoryBytes,
        formatBytes(newest?.memoryBytes ?? 0),
      )}
    </>
  );
}

function Empty() {
  return (
    <div class="empty">
      <p>No sandbox yet. In a repository of yours this makes one and runs a command in it:</p>
      <pre>berth exec -- npm test</pre>
      <p>Or press “Create”: a sandbox is ready in a moment.</p>
    </div>
  );
}
