/** The settings of a sandbox. Only what was edited is sent, and refused if somebody changed the settings meanwhile. */
import { useState } from "preact/hooks";
import type { Service } from "../../protocol/service.ts";
import type { Settings, SettingsPatch } from "../../protocol/settings.ts";
import type { TabProps } from "../pages/sandbox-page.tsx";
import { Action } from "../parts/action.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { ResourceTable } from "../parts/resource-table.tsx";
import { SameAs } from "../parts/same-as.tsx";
import { useRights } from "../parts/session.ts";
import { StateBadge } from "../parts/state-badge.tsx";
import { usePolled } from "../parts/use-polled.ts";

type TimeName = "idleTimeoutMs" | "maxLifetimeMs" | "destroyPausedAfterMs" | "checkpointEveryMs";

const minuteMs = 60_000;
const times: [TimeName, title: string][] = [
  ["idleTimeoutMs", "Minutes without work until it is idle"],
  ["maxLifetimeMs", "Minutes from its creation until it is destroyed"],
  ["destroyPausedAfterMs", "Minutes paused until it is destroyed"],
  ["checkpointEveryMs", "Minutes between automatic checkpoints"],
];

export function SettingsTab({ sandbox, refresh }: TabProps) {
  const { value, error, ...polled } = usePolled((signal) => sandbox.settings.get({ signal }), {
    everyMs: 3000,
  });
  const services = usePolled((signal) => sandbox.settings.services({ signal }), { everyMs: 3000 });
  /** The edits, and the version that the first of them was made on. */
  const [edits, setEdits] = useState<SettingsPatch>({});
  const [variable, setVariable] = useState({ name: "", value: "" });
  const mayChange = useRights()("lifecycle");
  if (value === undefined) return <ErrorNote error={error} what="Reading the settings" />;
  const edit = (change: SettingsPatch) =>
    setEdits({ ifVersion: value.version, ...edits, ...change });
  const editEnv = (name: string, text: string | null) =>
    edit({ env: { ...edits.env, [name]: text } });
  const forget = () => {
    setEdits({});
    setVariable({ name: "", value: "" });
  };
  const save = async () => {
    await sandbox.settings.patch(edits);
    forget();
    await Promise.all([polled.refresh(), services.refresh(), refresh()]);
  };
  const shown = { ...value, ...edits } as Settings;
  const { ifVersion: _, ...changes } = edits;
  const isChanged = Object.keys(changes).length > 0;
  return (
    <>
      <form class="card form" onSubmit={(event) => event.preventDefault()}>
        <ErrorNote error={error} what="Reading the settings" />
        <fieldset class="grid" disabled={!mayChange}>
          {times.map(([name, title]) => (
            <label key={name}>
              {title}
              <input
                type="number"
                min="0"
                step="any"
                placeholder="never"
                value={minutesOf(shown[name])}
                onInput={(event) =>
                  edit({ [name]: millisecondsOf(event.currentTarget.value, name) })
                }
              />
            </label>
          ))}
          <label>
            Checkpoints that are kept
            <input
              type="number"
              min="1"
              placeholder="all"
              value={shown.keepCheckpoints ?? ""}
              onInput={(event) => {
                const { value: text } = event.currentTarget;
                edit({ keepCheckpoints: text === "" ? null : Number(text) });
              }}
            />
          </label>
          <label>
            When it is idle
            <select
              value={shown.onIdle}
              onChange={(event) =>
                edit({ onIdle: event.currentTarget.value as Settings["onIdle"] })
              }
            >
              <option value="pause">pause it and keep its files</option>
              <option value="destroy">destroy it</option>
              <option value="none">let it run</option>
            </select>
          </label>
          <label>
            When it is paused
            <select
              value={shown.wake}
              onChange={(event) => edit({ wake: event.currentTarget.value as Settings["wake"] })}
            >
              <option value="auto">the next call starts it</option>
              <option value="never">only a start starts it</option>
            </select>
          </label>
          <label>
            Network, from the next start on
            <select
              value={String(shown.network.internet)}
              onChange={(event) =>
                edit({ network: { internet: event.currentTarget.value === "true" } })
              }
            >
              <option value="true">the internet</option>
              <option value="false">none</option>
            </select>
          </label>
        </fieldset>
        <h2>Variables</h2>
        <ResourceTable
          label="Variables"
          rows={value.envNames}
          keyOf={(name) => name}
          columns={[
            ["Name", (name) => <code>{name}</code>],
            ["Value", (name) => (edits.env?.[name] === null ? "will be removed" : "not shown")],
          ]}
          actions={
            mayChange
              ? (name) => (
                  <button type="button" class="small" onClick={() => editEnv(name, null)}>
                    Remove
                  </button>
                )
              : undefined
          }
          empty={<p>No variables.</p>}
        />
        {mayChange && (
          <div class="row">
            <input
              aria-label="Name of a variable"
              placeholder="STAGE"
              value={variable.name}
              onInput={(event) =>
                setVariable({ ...variable, name: event.currentTarget.value.trim() })
              }
            />
            <input
              class="grow"
              aria-label="Value of the variable"
              placeholder="test"
              value={variable.value}
              onInput={(event) => setVariable({ ...variable, value: event.currentTarget.value })}
            />
            <button
              type="button"
              disabled={variable.name === ""}
              onClick={() => {
                editEnv(variable.name, variable.value);
                setVariable({ name: "", value: "" });
              }}
            >
              Set
            </button>
          </div>
        )}
        {value.atNextStart !== undefined && (
          <p class="quiet" role="status">
            In effect from the next start on: {value.atNextStart.join(", ")}.
          </p>
        )}
        {mayChange && (
          <p class="row end">
            {isChanged && (
              <span class="quiet grow">Changed: {Object.keys(changes).join(", ")}</span>
            )}
            <button type="button" onClick={forget} disabled={!isChanged}>
              Discard
            </button>
            <Action class="primary" run={save} disabled={!isChanged}>
              Save
            </Action>
          </p>
        )}
        <SameAs
          verb="patchSettings"
          of={{ id: sandbox.id }}
          body={withoutValues(changes)}
          sdk={`await sandbox.settings.patch(${JSON.stringify(withoutValues(changes))})`}
        />
      </form>
      <Services services={services.value ?? []} error={services.error} />
    </>
  );
}

function Services({ services, error }: { services: Service[]; error: unknown }) {
  return (
    <section class="card">
      <h2>Services</h2>
      <ErrorNote error={error} what="Reading the services" />
      <ResourceTable
        label="Services"
        rows={services}
        keyOf={({ name }) => name}
        columns={[
          ["Name", ({ name }) => <code>{name}</code>],
          ["State", ({ state, problem }) => <StateBadge state={state} reason={problem} />],
          ["Port", ({ port }) => port ?? ""],
          ["Restart", ({ restart, restarts }) => `${restart}, ${restarts} so far`],
        ]}
        empty={<p>No service runs. Services start with the sandbox and are restarted.</p>}
      />
    </section>
  );
}

const minutesOf = (ms: number | null) => (ms === null ? "" : ms / minuteMs);

/** An empty field removes the limit; there is always an idle time. */
function millisecondsOf(text: string, name: TimeName): number | null | undefined {
  if (text !== "") return Math.round(Number(text) * minuteMs);
  return name === "idleTimeoutMs" ? undefined : null;
}

/** A line to copy shows no value of a variable: it may be a secret. */
function withoutValues({ env, ...rest }: SettingsPatch): SettingsPatch {
  if (env === undefined) return rest;
  const names = Object.entries(env).map(([name, value]) => [name, value === null ? null : "…"]);
  return { ...rest, env: Object.fromEntries(names) };
}
