/** The processes of a sandbox: start, input, signals, and the log of one of them from any point. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { ProcessInfo } from "../../client/index.ts";
import type { TabProps } from "../pages/sandbox-page.tsx";
import { Action } from "../parts/action.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { formatBytes, formatSpan } from "../parts/format.ts";
import { ResourceTable } from "../parts/resource-table.tsx";
import { quote, SameAs } from "../parts/same-as.tsx";
import { useRights } from "../parts/session.ts";
import { StateBadge } from "../parts/state-badge.tsx";
import { openTerminalView, type TerminalView } from "../parts/terminal-view.ts";
import { useNow, usePolled } from "../parts/use-polled.ts";

export function ProcessesTab({ sandbox }: TabProps) {
  const list = usePolled((signal) => sandbox.processes.list({ signal }), { everyMs: 2000 });
  const [command, setCommand] = useState("");
  const [chosen, setChosen] = useState<string>();
  const mayDo = useRights();
  const now = useNow();
  const processes = list.value ?? [];
  const start = async () => {
    const { id } = await sandbox.processes.start(command);
    setCommand("");
    setChosen(id);
    await list.refresh();
  };
  const end = async (id: string) => {
    await sandbox.process(id).delete();
    await list.refresh();
  };
  const shown = processes.find(({ id }) => id === chosen);
  return (
    <>
      <div class="card">
        {mayDo("exec") && (
          <div class="row">
            <input
              class="grow mono"
              aria-label="Command"
              placeholder="npm run dev"
              value={command}
              onInput={(event) => setCommand(event.currentTarget.value)}
            />
            <Action class="primary" run={start} disabled={command.trim() === ""}>
              Start
            </Action>
          </div>
        )}
        <ErrorNote error={list.error} what="Reading the processes" />
        <ResourceTable
          label="Processes"
          rows={processes}
          keyOf={({ id }) => id}
          columns={[
            ["Command", (process) => <code>{process.command ?? process.argv?.join(" ")}</code>],
            ["State", (process) => <StateBadge state={process.state} reason={endOf(process)} />],
            ["Time", (process) => formatSpan(spanOf(process, now))],
            ["Log", (process) => formatBytes(process.log.end)],
          ]}
          actions={(process) => (
            <>
              <button type="button" class="small" onClick={() => setChosen(process.id)}>
                Log
              </button>
              {process.state === "running" && mayDo("exec") && (
                <>
                  <Action class="small" run={() => sandbox.process(process.id).kill("SIGINT")}>
                    Interrupt
                  </Action>
                  <Action class="small" run={() => end(process.id)}>
                    End
                  </Action>
                </>
              )}
            </>
          )}
          empty={
            <>
              <p>
                A process runs on when its caller leaves, and its log can be read from any point.
              </p>
              <pre>berth run dev -- npm run dev</pre>
            </>
          }
        />
        <SameAs
          verb="startProcess"
          of={{ id: sandbox.id }}
          body={{ command: command || "npm run dev" }}
          command={`berth run --id ${sandbox.id} dev -- sh -c ${quote(command || "npm run dev")}`}
          sdk={`await sandbox.processes.start(${JSON.stringify(command || "npm run dev")})`}
        />
      </div>
      {shown !== undefined && <LogView key={shown.id} sandbox={sandbox} process={shown} />}
    </>
  );
}

const endOf = ({ exitCode, signal }: ProcessInfo): string | undefined =>
  signal ?? (exitCode === undefined || exitCode === null ? undefined : `${exitCode}`);

const spanOf = ({ startedAt, endedAt }: ProcessInfo, now: number): number =>
  (endedAt === undefined ? now : Date.parse(endedAt)) - Date.parse(startedAt);

type LogViewProps = { sandbox: TabProps["sandbox"]; process: ProcessInfo };

function LogView({ sandbox, process }: LogViewProps) {
  const frame = useRef<HTMLDivElement>(null);
  const view = useRef<TerminalView | undefined>(undefined);
  const [error, setError] = useState<unknown>();
  const [note, setNote] = useState("");
  const [word, setWord] = useState("");
  const [input, setInput] = useState("");
  const [from, setFrom] = useState(0);
  const mayDo = useRights();
  useEffect(() => {
    const parent = frame.current;
    if (parent === null) return;
    const ended = new AbortController();
    const opened = openTerminalView(parent, { disableStdin: true, convertEol: true });
    view.current = opened;
    const observer = new ResizeObserver(() => opened.fit.fit());
    observer.observe(parent);
    const follow = async () => {
      const options = { after: from, signal: ended.signal };
      for await (const event of sandbox.process(process.id).logs(options)) {
        if (event.type === "output") {
          await new Promise<void>((drawn) => opened.terminal.write(event.bytes, drawn));
          setNote(`${formatBytes(event.cursor)} read`);
        } else if (event.type === "truncated") {
          setNote(`the output from ${event.from} to ${event.to} is no longer stored`);
        } else {
          setNote(
            event.signal === null ? `ended with ${event.exitCode}` : `ended by ${event.signal}`,
          );
        }
      }
    };
    follow().catch((thrown) => {
      if (!ended.signal.aborted) setError(thrown);
    });
    return () => {
      ended.abort();
      observer.disconnect();
      opened.terminal.dispose();
    };
  }, [sandbox, process.id, from]);
  const send = async () => {
    await sandbox.process(process.id).write(`${input}\n`);
    setInput("");
  };
  return (
    <div class="card">
      <div class="row">
        <h2 class="grow mono">{process.command ?? process.argv?.join(" ")}</h2>
        <input
          type="search"
          aria-label="Search the log"
          placeholder="Search the log"
          value={word}
          onInput={(event) => {
            setWord(event.currentTarget.value);
            view.current?.search.findNext(event.currentTarget.value, { incremental: true });
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter") view.current?.search.findNext(word);
          }}
        />
        <label class="inline">
          From byte
          <input
            type="number"
            min={process.log.start}
            max={process.log.end}
            value={from}
            onChange={(event) => setFrom(Math.max(0, Number(event.currentTarget.value)))}
          />
        </label>
      </div>
      <div class="terminal" ref={frame} data-log={process.id} />
      <p class="quiet" role="status">
        {note}
      </p>
      {process.state === "running" && mayDo("exec") && (
        <div class="row">
          <input
            class="grow mono"
            aria-label="Input"
            placeholder="A line of input"
            value={input}
            onInput={(event) => setInput(event.currentTarget.value)}
          />
          <Action run={send}>Send</Action>
        </div>
      )}
      <ErrorNote error={error} what="Following the log" />
    </div>
  );
}
