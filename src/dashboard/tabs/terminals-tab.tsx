/** The terminals of a sandbox, one shown at a time. A lost connection continues without a gap. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { TabProps } from "../pages/sandbox-page.tsx";
import { Action } from "../parts/action.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { SameAs } from "../parts/same-as.tsx";
import { useRights } from "../parts/session.ts";
import { openTerminalView } from "../parts/terminal-view.ts";
import { usePolled } from "../parts/use-polled.ts";

export function TerminalsTab({ sandbox }: TabProps) {
  const list = usePolled((signal) => sandbox.terminals.list({ signal }), { everyMs: 3000 });
  const [chosen, setChosen] = useState<string>();
  const mayDo = useRights();
  const terminals = list.value ?? [];
  const shown = terminals.find(({ id }) => id === chosen) ?? terminals[0];
  const create = async () => {
    const { id } = await sandbox.terminals.create();
    await list.refresh();
    setChosen(id);
  };
  const end = async () => {
    if (shown === undefined) return;
    await sandbox.terminal(shown.id).delete();
    await list.refresh();
  };
  return (
    <div class="card">
      <div class="row">
        {terminals.map(({ id }, index) => (
          <button
            key={id}
            type="button"
            class="small"
            title={id}
            aria-pressed={id === shown?.id}
            onClick={() => setChosen(id)}
          >
            Terminal {index + 1}
          </button>
        ))}
        {mayDo("terminal") && (
          <Action class="primary" run={create}>
            New terminal
          </Action>
        )}
        <span class="grow" />
        {shown !== undefined && mayDo("terminal") && (
          <Action class="small" run={end}>
            End it
          </Action>
        )}
      </div>
      <ErrorNote error={list.error} what="Reading the terminals" />
      {shown === undefined ? (
        <div class="empty">
          <p>A terminal keeps running when this tab is closed, and others can watch it.</p>
          <pre>berth attach</pre>
        </div>
      ) : (
        <TerminalFrame key={shown.id} id={shown.id} sandbox={sandbox} />
      )}
      <SameAs
        verb="createTerminal"
        of={{ id: sandbox.id }}
        body={{}}
        command={`berth attach --id ${sandbox.id}`}
        sdk="const live = await (await sandbox.terminals.create()).attach()"
      />
    </div>
  );
}

/** Typed bytes go out in one message for each turn of the page. */
function TerminalFrame({ id, sandbox }: { id: string; sandbox: TabProps["sandbox"] }) {
  const frame = useRef<HTMLDivElement>(null);
  const [error, setError] = useState<unknown>();
  const [note, setNote] = useState("connecting");
  useEffect(() => {
    const parent = frame.current;
    if (parent === null) return;
    const ended = new AbortController();
    const { terminal, fit } = openTerminalView(parent);
    const observer = new ResizeObserver(() => fit.fit());
    observer.observe(parent);
    const run = async () => {
      const live = await sandbox.terminal(id).attach({ signal: ended.signal });
      const typed = terminal.onData((text) => live.write(text));
      const resized = terminal.onResize((size) => live.resize(size));
      live.resize({ cols: terminal.cols, rows: terminal.rows });
      terminal.focus();
      try {
        for await (const event of live) {
          // The next bytes are taken when these are drawn, so a flood waits at its source.
          if (event.type === "screen") terminal.reset();
          if (event.type === "output" || event.type === "screen") {
            await new Promise<void>((drawn) => terminal.write(event.bytes, drawn));
          }
          if (event.type === "ready") setNote("connected");
          if (event.type === "refused") setNote(event.message);
          if (event.type === "truncated") setNote("older output is no longer stored");
          if (event.type === "exit") setNote("ended");
        }
      } finally {
        typed.dispose();
        resized.dispose();
      }
    };
    run().catch((thrown) => {
      if (!ended.signal.aborted) setError(thrown);
    });
    return () => {
      ended.abort();
      observer.disconnect();
      terminal.dispose();
    };
  }, [id, sandbox]);
  return (
    <>
      <div class="terminal" ref={frame} data-terminal={id} />
      <p class="quiet" role="status">
        {note}
      </p>
      <ErrorNote error={error} what="The terminal" />
    </>
  );
}
