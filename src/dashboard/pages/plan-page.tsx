/** One plan: its members, its running commit, and what earlier runs changed. */
import { useMemo, useState } from "preact/hooks";
import type { Commit } from "../../client/index.ts";
import { berth } from "../api.ts";
import { Action } from "../parts/action.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { formatTime } from "../parts/format.ts";
import { type ResourceColumn, ResourceTable } from "../parts/resource-table.tsx";
import { addressOf } from "../parts/router.ts";
import { SameAs } from "../parts/same-as.tsx";
import { useRights } from "../parts/session.ts";
import { StateBadge } from "../parts/state-badge.tsx";
import { usePolled } from "../parts/use-polled.ts";

export function PlanPage({ name }: { name: string }) {
  const plan = useMemo(() => berth.plan(name), [name]);
  const { value, error, refresh } = usePolled((signal) => plan.get({ signal }), { everyMs: 2000 });
  const commits = usePolled((signal) => plan.listCommits({ signal }), { everyMs: 3000 });
  const [shown, setShown] = useState<number>();
  const [member, setMember] = useState({ key: "", id: "" });
  const [isRollingBack, setRollingBack] = useState(false);
  const mayDo = useRights();
  if (value === undefined) return <ErrorNote error={error} what="Reading the plan" />;
  const then = (call: () => Promise<unknown>) => async () => {
    await call();
    await Promise.all([refresh(), commits.refresh()]);
  };
  const canChange = mayDo("lifecycle") && value.running === undefined;
  return (
    <>
      <div class="row">
        <h1 class="grow">{name}</h1>
        {canChange && (
          <>
            <Action class="primary" run={then(() => plan.commit())}>
              Commit
            </Action>
            <button type="button" onClick={() => setRollingBack(true)}>
              Roll back …
            </button>
          </>
        )}
      </div>
      <ErrorNote error={error} what="Reading the plan" />
      {value.running !== undefined && <RunningRun name={name} number={value.running.commit} />}
      <div class="grid">
        <section class="card">
          <h2>Members</h2>
          <ResourceTable
            label="Members"
            rows={value.members}
            keyOf={({ key }) => key}
            columns={[
              ...memberColumns,
              [
                "Committed",
                (row) => (row.state === "joining" ? "joining" : commitText(row.committed)),
              ],
            ]}
            actions={
              canChange
                ? ({ key }) => (
                    <Action class="small" run={then(() => plan.deleteMember(key))}>
                      Remove
                    </Action>
                  )
                : undefined
            }
            empty={<p>None yet. A member is a sandbox under a name of its own.</p>}
          />
          {canChange && (
            <div class="row">
              <input
                aria-label="Member"
                placeholder="frontend"
                value={member.key}
                onInput={(event) => setMember({ ...member, key: event.currentTarget.value.trim() })}
              />
              <input
                class="grow mono"
                aria-label="Sandbox id"
                placeholder="id of a sandbox"
                value={member.id}
                onInput={(event) => setMember({ ...member, id: event.currentTarget.value.trim() })}
              />
              <Action
                disabled={member.key === "" || member.id === ""}
                run={then(async () => {
                  await plan.setMember(member.key, { sandboxId: member.id });
                  setMember({ key: "", id: "" });
                })}
              >
                Add
              </Action>
            </div>
          )}
        </section>
        <section class="card">
          <h2>History</h2>
          <ResourceTable
            label="History"
            rows={commits.value ?? []}
            keyOf={({ commit }) => commit}
            columns={[
              [
                "Run",
                ({ kind, commit }) => (
                  <button type="button" class="link" onClick={() => setShown(commit)}>
                    {kind} {commit}
                  </button>
                ),
              ],
              ["Outcome", (run) => <StateBadge state={run.outcome} reason={run.error?.message} />],
              ["Started", ({ startedAt }) => formatTime(startedAt)],
            ]}
            empty={<p>Nothing was committed yet.</p>}
          />
        </section>
      </div>
      {shown !== undefined && <Run name={name} number={shown} key={shown} />}
      <SameAs
        verb="commitPlan"
        of={{ plan: name }}
        body={{}}
        command={`berth plan commit ${name}`}
        sdk={`await berth.plan("${name}").commit()`}
      />
      {isRollingBack && (
        <Dialog
          title={`Roll back ${name}`}
          action="Roll back"
          isDangerous
          onClose={() => setRollingBack(false)}
          onAction={then(() => plan.rollback())}
        >
          <p>All members get the files of their last commit. What was written since is lost.</p>
        </Dialog>
      )}
    </>
  );
}

const memberColumns: ResourceColumn<{ key: string; sandbox: string }>[] = [
  ["Member", ({ key }) => key],
  [
    "Sandbox",
    ({ sandbox }) => (
      <a class="mono" href={addressOf(["sandboxes", sandbox])}>
        {sandbox}
      </a>
    ),
  ],
];

const commitText = (number: number | null) =>
  number === null ? "never committed" : `commit ${number}`;

const steps = ["Leases of all members", "Files saved", "Decided", "Members changed"];

/** How far the run is, as its facts say: the decision is the moment from which it cannot be undone. */
function stepOf(run: Commit): number {
  if (run.endedAt !== undefined) return steps.length;
  if (run.decidedAt !== undefined) return 3;
  return run.members.some(({ checkpoint }) => checkpoint !== undefined) ? 1 : 0;
}

function RunningRun({ name, number }: { name: string; number: number }) {
  const { value, error } = usePolled((signal) => berth.plan(name).getCommit(number, { signal }), {
    everyMs: 300,
    key: `${name} ${number}`,
  });
  const step = value === undefined ? 0 : stepOf(value);
  return (
    <section class="card" aria-live="polite">
      <h2>
        {value?.kind ?? "Run"} {number} is running
      </h2>
      <ErrorNote error={error} what="Reading the run" />
      <ol class="steps">
        {steps.map((title, index) => (
          <li key={title} class={`badge ${index < step ? "good" : index === step ? "busy" : ""}`}>
            {title}
          </li>
        ))}
      </ol>
      {value !== undefined && <Members run={value} />}
    </section>
  );
}

function Run({ name, number }: { name: string; number: number }) {
  const { value, error } = usePolled((signal) => berth.plan(name).getCommit(number, { signal }), {
    key: `${name} ${number}`,
  });
  return (
    <section class="card">
      <h2>
        {value?.kind ?? "Run"} {number}
      </h2>
      <ErrorNote error={error} what="Reading the run" />
      {value?.error !== undefined && <p>{value.error.message}</p>}
      {value !== undefined && <Members run={value} />}
    </section>
  );
}

function Members({ run }: { run: Commit }) {
  return (
    <ResourceTable
      label={`Members of ${run.kind} ${run.commit}`}
      rows={run.members}
      keyOf={({ key }) => key}
      columns={[
        ...memberColumns,
        ["Outcome", ({ outcome, error }) => <StateBadge state={outcome} reason={error?.message} />],
        ["Changed", ({ changes }) => changes !== undefined && <Changes changes={changes} />],
      ]}
    />
  );
}

function Changes({ changes }: { changes: NonNullable<Commit["members"][number]["changes"]> }) {
  const { added, modified, deleted } = changes.counts;
  const paths = [
    ...changes.added.map((path) => `+ ${path}`),
    ...changes.modified.map((path) => `~ ${path}`),
    ...changes.deleted.map((path) => `− ${path}`),
  ];
  return (
    <details>
      <summary>
        +{added} ~{modified} −{deleted}
      </summary>
      <pre>{paths.join("\n")}</pre>
    </details>
  );
}
