/** Servers in the sandbox: open an address for a port, look at it, close it. */
import { useState } from "preact/hooks";
import type { Port } from "../../client/index.ts";
import type { TabProps } from "../pages/sandbox-page.tsx";
import { Action } from "../parts/action.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { formatTime } from "../parts/format.ts";
import { ResourceTable } from "../parts/resource-table.tsx";
import { SameAs } from "../parts/same-as.tsx";
import { useRights } from "../parts/session.ts";
import { usePolled } from "../parts/use-polled.ts";

export function PortsTab({ sandbox }: TabProps) {
  const list = usePolled((signal) => sandbox.ports.list({ signal }), { everyMs: 4000 });
  const [port, setPort] = useState("8000");
  const [opened, setOpened] = useState<Port>();
  const mayDo = useRights();
  const open = async (number: number) => {
    setOpened(await sandbox.ports.open(number));
    await list.refresh();
  };
  const close = async (number: number) => {
    await sandbox.ports.close(number);
    if (opened?.port === number) setOpened(undefined);
    await list.refresh();
  };
  return (
    <>
      <div class="card">
        {mayDo("exec") && (
          <div class="row">
            <label class="inline">
              Port
              <input
                type="number"
                min="1"
                max="65535"
                value={port}
                onInput={(event) => setPort(event.currentTarget.value)}
              />
            </label>
            <Action class="primary" run={() => open(Number(port))}>
              Open
            </Action>
          </div>
        )}
        <ErrorNote error={list.error} what="Reading the ports" />
        <ResourceTable
          label="Ports"
          rows={list.value ?? []}
          keyOf={(one) => one.port}
          columns={[
            ["Port", (one) => one.port],
            ["Open since", (one) => formatTime(one.createdAt)],
          ]}
          actions={
            mayDo("exec")
              ? (one) => (
                  <>
                    <Action class="small" run={() => open(one.port)} title="The old address ends">
                      New address
                    </Action>
                    <Action class="small" run={() => close(one.port)}>
                      Close
                    </Action>
                  </>
                )
              : undefined
          }
          empty={
            <>
              <p>Open a port of a server in the sandbox to see it here and to share its address.</p>
              <pre>berth open 8000</pre>
            </>
          }
        />
        <SameAs
          verb="openPort"
          of={{ id: sandbox.id }}
          body={{ port: Number(port) }}
          command={`berth open --id ${sandbox.id} ${port}`}
          sdk={`const { url } = await sandbox.ports.open(${port})`}
        />
      </div>
      {opened !== undefined && (
        <div class="card">
          <p class="row">
            <a href={opened.url} target="_blank" rel="noopener noreferrer">
              {opened.url}
            </a>
            <Action class="small" run={() => navigator.clipboard.writeText(opened.url)}>
              Copy
            </Action>
            <span class="quiet">Everyone who knows this address can use it. It is shown once.</span>
          </p>
          {/* A host of its own, so what runs there cannot reach this page or its session. */}
          <iframe
            class="preview"
            title={`Port ${opened.port}`}
            src={opened.url}
            sandbox="allow-scripts allow-forms allow-same-origin"
            referrerpolicy="no-referrer"
          />
        </div>
      )}
    </>
  );
}
