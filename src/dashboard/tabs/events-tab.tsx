/** The events of a sandbox, live, newest first, with a filter by kind. */
import { useEffect, useState } from "preact/hooks";
import type { SandboxEvent } from "../../client/index.ts";
import type { TabProps } from "../pages/sandbox-page.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { formatTime } from "../parts/format.ts";
import { SameAs } from "../parts/same-as.tsx";

type Stored = Extract<SandboxEvent, { type: "event" }>;

/** Older events stay on the server; the page holds this many. */
const shownMax = 1000;
const drawMs = 100;

export function EventsTab({ sandbox }: TabProps) {
  const [events, setEvents] = useState<readonly Stored[]>([]);
  const [error, setError] = useState<unknown>();
  const [kind, setKind] = useState("");
  useEffect(() => {
    const ended = new AbortController();
    let gathered: Stored[] = [];
    const timer = setInterval(() => {
      if (gathered.length === 0) return;
      const newest = gathered.reverse();
      gathered = [];
      setEvents((known) => [...newest, ...known].slice(0, shownMax));
    }, drawMs);
    const follow = async () => {
      for await (const event of sandbox.events({ signal: ended.signal })) {
        if (event.type === "event") gathered.push(event);
        if (gathered.length > shownMax) gathered = gathered.slice(-shownMax);
      }
    };
    follow().catch((thrown) => {
      if (!ended.signal.aborted) setError(thrown);
    });
    return () => {
      ended.abort();
      clearInterval(timer);
    };
  }, [sandbox]);
  const kinds = [...new Set(events.map(({ event }) => event.type))].sort();
  const shown = kind === "" ? events : events.filter(({ event }) => event.type === kind);
  return (
    <div class="card">
      <div class="row">
        <select
          aria-label="Kind"
          value={kind}
          onChange={(event) => setKind(event.currentTarget.value)}
        >
          <option value="">All kinds</option>
          {kinds.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
        <span class="quiet">{shown.length} events</span>
      </div>
      <ErrorNote error={error} what="Following the events" />
      <div class="events" role="log" aria-label="Events" tabIndex={0}>
        {shown.map(({ seq, at, event }) => (
          <div key={seq}>
            <span class="quiet">{seq}</span>
            <span class="quiet">{formatTime(at)}</span>
            <strong>{event.type}</strong>
            <span class="mono">{factsOf(event)}</span>
          </div>
        ))}
      </div>
      <SameAs
        verb="listEvents"
        of={{ id: sandbox.id }}
        query={{ follow: 1 }}
        sdk="for await (const event of sandbox.events()) console.log(event)"
      />
    </div>
  );
}

function factsOf({ type: _, ...facts }: Stored["event"]): string {
  return Object.entries(facts)
    .map(([name, value]) => `${name}=${typeof value === "object" ? JSON.stringify(value) : value}`)
    .join(" ");
}
