/** All plans by name. */
import { useState } from "preact/hooks";
import { berth } from "../api.ts";
import { Action } from "../parts/action.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { formatTime } from "../parts/format.ts";
import { addressOf } from "../parts/router.ts";
import { curlLine, SameAs } from "../parts/same-as.tsx";
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
        {plans.length === 0 ? (
          <div class="empty">
            <p>A plan commits or rolls back several sandboxes together: all of them or none.</p>
            <pre>berth plan create release-42</pre>
          </div>
        ) : (
          <div class="scroll">
            <table>
              <tbody>
                {plans.map((plan) => (
                  <tr key={plan.name}>
                    <td>
                      <a href={addressOf(["plans", plan.name])}>{plan.name}</a>
                    </td>
                    <td class="quiet">made {formatTime(plan.createdAt)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
        {list.value?.nextCursor !== null && list.value !== undefined && (
          <p class="quiet">The first {pageSize} are shown.</p>
        )}
        <SameAs
          curl={curlLine("GET", "/v1/plans")}
          command="berth plan list"
          sdk="await berth.plans.list()"
        />
      </div>
    </>
  );
}
