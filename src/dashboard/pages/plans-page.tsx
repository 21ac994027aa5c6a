/** All plans by name. */
import { useState } from "preact/hooks";
import { berth } from "../api.ts";
import { Action } from "../parts/action.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { formatTime } from "../parts/format.ts";
import { ResourceTable } from "../parts/resource-table.tsx";
import { addressOf } from "../parts/router.ts";
import { SameAs } from "../parts/same-as.tsx";
import { useRights } from "../parts/session.ts";
import { usePolled } from "../parts/use-polled.ts";

const pageSize = 100;

export function PlansPage() {
  const list = usePolled((signal) => berth.plans.list({ limit: pageSize, signal }), {
    everyMs: 5000,
  });
  const [name, setName] = useState("");
  const mayDo = useRights();
  const create = async () => {
    await berth.plans.create(name);
    location.hash = addressOf(["plans", name]);
  };
  const plans = list.value ?? [];
  return (
    <>
      <div class="row">
        <h1 class="grow">Plans</h1>
        {mayDo("lifecycle") && (
          <>
            <input
              aria-label="Name"
              placeholder="release-42"
              value={name}
              onInput={(event) => setName(event.currentTarget.value.trim())}
            />
            <Action class="primary" run={create} disabled={name === ""}>
              Create
            </Action>
          </>
        )}
      </div>
      <ErrorNote error={list.error} what="Reading the plans" />
      <div class="card">
        <ResourceTable
          label="Plans"
          rows={plans}
          keyOf={(plan) => plan.name}
          columns={[
            ["Plan", (plan) => <a href={addressOf(["plans", plan.name])}>{plan.name}</a>],
            ["Made", (plan) => formatTime(plan.createdAt)],
          ]}
          empty={
            <>
              <p>A plan commits or rolls back several sandboxes together: all of them or none.</p>
              <pre>berth plan create release-42</pre>
            </>
          }
        />
        {list.value?.nextCursor !== null && list.value !== undefined && (
          <p class="quiet">The first {pageSize} are shown.</p>
        )}
        <SameAs verb="listPlans" command="berth plan" sdk="await berth.plans.list()" />
      </div>
    </>
  );
}
